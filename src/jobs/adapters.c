/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/adapters.h"
#include "base/parse.h"
#include "graphs/tensors.h"
#include "jobs/unused.h"

#include <xxhash.h>

enum { WEIGHT_MAX = 1000 };

int smalti_lora_read(char *text, const char *what, struct smalti_lora *lora, struct smalti_error *error)
{
	char *colon = strrchr(text, ':');
	*lora = (struct smalti_lora){.path = text, .weight = 1};
	if (colon && smalti_parse_double(colon + 1, -WEIGHT_MAX, WEIGHT_MAX, &lora->weight, NULL) == 0)
		*colon = 0;
	return *text ? 0
		     : smalti_fail(error, SMALTI_EINVAL, "%s: expected PATH[:WEIGHT], found nothing", what);
}

struct smalti_adapter_set *smalti_adapters_open(const struct smalti_lora *loras, int64_t count,
						const struct smalti_t5_config *text_encoder,
						const struct smalti_transformer_config *transformer,
						struct smalti_error *error)
{
	struct smalti_inventory tensors[SMALTI_ADAPTED_COMPONENTS] = {{0}};
	if (smalti_component_tensors(&tensors[SMALTI_TEXT_ENCODER], SMALTI_TEXT_ENCODER, text_encoder,
				     SMALTI_F32, error) < 0 ||
	    (transformer && smalti_component_tensors(&tensors[SMALTI_TRANSFORMER], SMALTI_TRANSFORMER,
						     transformer, SMALTI_F32, error) < 0)) {
		smalti_inventory_free(&tensors[SMALTI_TEXT_ENCODER]);
		return NULL;
	}
	struct smalti_adapter_set *set = smalti_adapter_set_new(tensors, error);
	int status = set ? 0 : -1;
	for (int64_t i = 0; i < count && status == 0; i++)
		status = smalti_adapter_set_add(set, loras[i].path, loras[i].weight, error);
	if (status == 0)
		return set;
	smalti_adapter_set_free(set);
	return NULL;
}

static void add_change(XXH3_state_t *state, const struct smalti_low_rank *change)
{
	const int64_t extents[] = {change->out, change->in, change->rank, change->by_column};
	const int64_t magnitudes = !change->magnitude ? 0 : change->by_column ? change->in : change->out;
	XXH3_128bits_update(state, change->tensor, strlen(change->tensor) + 1);
	XXH3_128bits_update(state, extents, sizeof(extents));
	XXH3_128bits_update(state, &change->scale, sizeof(change->scale));
	XXH3_128bits_update(state, change->a, (size_t)(change->rank * change->in) * sizeof(float));
	XXH3_128bits_update(state, change->b, (size_t)(change->out * change->rank) * sizeof(float));
	if (magnitudes)
		XXH3_128bits_update(state, change->magnitude, (size_t)magnitudes * sizeof(float));
}

int smalti_adapters_digest(const struct smalti_adapter_set *adapters, char *digest,
			   struct smalti_error *error)
{
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_128bits_reset(state);
	XXH3_128bits_update(state, digest, SMALTI_DIGEST_LENGTH);
	for (int i = 0; i < adapters->count; i++) {
		const struct smalti_adapter_use *use = &adapters->uses[i];
		XXH3_128bits_update(state, &use->weight, sizeof(use->weight));
		XXH3_128bits_update(state, &use->adapter->count, sizeof(use->adapter->count));
		for (int64_t k = 0; k < use->adapter->count; k++)
			add_change(state, &use->adapter->changes[k]);
	}
	const XXH128_hash_t hash = XXH3_128bits_digest(state);
	snprintf(digest, SMALTI_DIGEST_LENGTH + 1, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
	XXH3_freeState(state);
	return 0;
}
