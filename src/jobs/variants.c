/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/variants.h"
#include "jobs/adapters.h"
#include "jobs/model.h"

enum {
	LORAS_MAX = 16,
	KEPT_UNUSED = 32,
	KEPT_SHARE = 16 /* of the session's memory, that unused ones may hold */
};

struct smalti_variants {
	pthread_mutex_t lock;
	struct smalti_variant *first;
	int64_t clock, bytes;
};

struct smalti_variants *smalti_variants_new(struct smalti_error *error)
{
	struct smalti_variants *variants = smalti_calloc(1, sizeof(*variants), error);
	if (variants)
		pthread_mutex_init(&variants->lock, NULL);
	return variants;
}

static void free_variant(struct smalti_variant *variant)
{
	smalti_denoiser_free(variant->denoiser);
	smalti_task_group_free(variant->task_group);
	smalti_adapter_set_free(variant->adapters);
	free(variant->lora);
	free(variant);
}

void smalti_variants_free(struct smalti_variants *variants)
{
	if (!variants)
		return;
	for (struct smalti_variant *variant = variants->first, *next; variant; variant = next) {
		next = variant->next;
		free_variant(variant);
	}
	pthread_mutex_destroy(&variants->lock);
	free(variants);
}

/* Reads the adapters of "PATH[:WEIGHT],...". */
static struct smalti_adapter_set *read_adapters(const struct smalti_model *model, const char *text,
						struct smalti_error *error)
{
	struct smalti_lora loras[LORAS_MAX];
	int64_t count = 0;
	SCOPED(free) char *copy = smalti_format(error, "%s", text);
	char *rest = copy;
	for (char *item; copy && (item = strsep(&rest, ",")); count++) {
		if (count == LORAS_MAX) {
			smalti_fail(error, SMALTI_EINVAL, "lora: more than %d adapters", LORAS_MAX);
			return NULL;
		}
		if (smalti_lora_read(item, "lora", &loras[count], error) < 0)
			return NULL;
	}
	return copy ? smalti_adapters_open(loras, count, &model->text.config, &model->transformer, error)
		    : NULL;
}

/* Refuses what only merging does. */
static int check_kind(const struct smalti_adapter_set *adapters, struct smalti_error *error)
{
	const struct smalti_adapter *text = smalti_adapter_set_find(adapters, SMALTI_TEXT_ENCODER, false);
	const struct smalti_adapter *merged =
	    text ? text : smalti_adapter_set_find(adapters, SMALTI_TRANSFORMER, true);
	if (!merged)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: %s is merged into a model, not used by single requests: give it to all, with "
			   "--lora",
			   merged->path, text ? "an adapter of the text encoder" : "DoRA");
}

static int64_t bytes_of(const struct smalti_variant *variant)
{
	int64_t values = 0;
	for (int i = 0; i < variant->adapters->count; i++)
		for (int64_t k = 0; k < variant->adapters->uses[i].adapter->count; k++) {
			const struct smalti_low_rank *change =
			    &variant->adapters->uses[i].adapter->changes[k];
			values += change->rank * (change->in + change->out);
		}
	return 3 * values * (int64_t)sizeof(float); /* as read, in pairs, packed */
}

static int fill(struct smalti_variant *variant, const struct smalti_model *model, const char *lora,
		struct smalti_error *error)
{
	if (model->adapters)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "lora: the model has adapters of all images already: name them in every request, or "
		    "give none of its own to a request");
	variant->lora = smalti_format(error, "%s", lora);
	variant->adapters = variant->lora ? read_adapters(model, lora, error) : NULL;
	if (!variant->adapters || check_kind(variant->adapters, error) < 0)
		return -1;
	variant->task_group = smalti_task_group_new(model->session, "adapter", INT64_MAX, error);
	if (!variant->task_group)
		return -1;
	variant->denoiser = model->denoiser->functions->adapted(model->denoiser, variant->task_group,
								variant->adapters, error);
	memcpy(variant->digest, model->digest, sizeof(variant->digest));
	variant->bytes = bytes_of(variant);
	return variant->denoiser ? smalti_adapters_digest(variant->adapters, variant->digest, error) : -1;
}

/* Returns where the unused one is that was not used for the longest time; NULL: all are kept. */
static struct smalti_variant **find_stale(struct smalti_variants *variants, int64_t memory)
{
	struct smalti_variant **oldest = NULL;
	int64_t count = 0, bytes = 0;
	for (struct smalti_variant **at = &variants->first; *at; at = &(*at)->next)
		if ((*at)->users == 0) {
			count++;
			bytes += (*at)->bytes;
			if (!oldest || (*at)->last_use < (*oldest)->last_use)
				oldest = at;
		}
	return count > KEPT_UNUSED || bytes > memory / KEPT_SHARE ? oldest : NULL;
}

/* Frees unused ones until those that are left are few and small. */
static void trim(struct smalti_variants *variants, int64_t memory)
{
	for (struct smalti_variant **at; (at = find_stale(variants, memory));) {
		struct smalti_variant *variant = *at;
		*at = variant->next;
		variants->bytes -= variant->bytes;
		free_variant(variant);
	}
}

struct smalti_variant *smalti_variant_get(const struct smalti_model *model, const char *lora,
					  struct smalti_error *error)
{
	struct smalti_variants *variants = model->variants;
	HOLD_MUTEX(&variants->lock);
	trim(variants, model->session->memory);
	struct smalti_variant *variant = variants->first;
	while (variant && strcmp(variant->lora, lora) != 0)
		variant = variant->next;
	if (!variant) {
		variant = smalti_calloc(1, sizeof(*variant), error);
		if (!variant || fill(variant, model, lora, error) < 0) {
			if (variant)
				free_variant(variant);
			return NULL;
		}
		variant->next = variants->first;
		variants->first = variant;
		variants->bytes += variant->bytes;
	}
	variant->users++;
	variant->last_use = ++variants->clock;
	return variant;
}

struct smalti_variant *smalti_variant_share(const struct smalti_model *model, struct smalti_variant *variant)
{
	HOLD_MUTEX(&model->variants->lock);
	if (variant)
		variant->users++;
	return variant;
}

void smalti_variant_put(const struct smalti_model *model, struct smalti_variant *variant)
{
	HOLD_MUTEX(&model->variants->lock);
	if (variant)
		variant->users--;
}

int64_t smalti_variants_bytes(const struct smalti_model *model)
{
	HOLD_MUTEX(&model->variants->lock);
	return model->variants->bytes;
}
