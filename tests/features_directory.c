/* SPDX-License-Identifier: Apache-2.0 */
#include "features_directory.h"

#include "base/base.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

enum { LATENT_WIDTH = 3, IMAGE_SIZE = 256 };

/* `count` values of a formula in the directory's type; free with free(). */
static void *fill(enum smalti_dtype dtype, int64_t count, int64_t from, int64_t modulus)
{
	float *wide = malloc((size_t)(count + 1) * sizeof(*wide));
	void *values = malloc((size_t)(count + 1) * sizeof(*wide));
	for (int64_t i = 0; i < count; i++)
		wide[i] = (float)((from + i) % modulus) / 4 - 7;
	if (dtype == SMALTI_F32)
		memcpy(values, wide, (size_t)count * sizeof(*wide));
	else
		smalti_narrow(dtype, wide, count, values);
	free(wide);
	return values;
}

static int append(const struct features_directory *f, struct smalti_shard_writer *writer, int64_t index,
		  struct smalti_error *error)
{
	struct smalti_features_row row = {.index = index, .key = f->keys[index]};
	void *kept[5] = {NULL};
	const bool failed = index == f->failed;
	for (int c = 0; c < f->caption_count && !failed; c++) {
		const int64_t tokens = 1 + (7 * index + c) % f->max_tokens;
		int32_t *ids = kept[2 * c] = malloc((size_t)tokens * sizeof(*ids));
		for (int64_t i = 0; i < tokens; i++)
			ids[i] = (int32_t)(i + 3);
		kept[2 * c + 1] = fill(f->dtype, tokens * f->text_width, index + c, 61);
		row.texts[c] =
		    (struct smalti_features_text){.tokens = tokens, .ids = ids, .values = kept[2 * c + 1]};
	}
	if (f->latent_channels && !failed) {
		const int64_t height = f->latent_height + index % 3;
		kept[4] = fill(f->dtype, 2 * f->latent_channels * height * LATENT_WIDTH, index, 59);
		row.image = (struct smalti_features_image){.height = 8 * height,
							   .width = 80,
							   .ratio = 0.25,
							   .latent_height = height,
							   .latent_width = LATENT_WIDTH,
							   .values = kept[4]};
	}
	const struct smalti_shard_failure failure = {
	    .index = index, .key = row.key, .stage = "picture", .reason = "a <b>test</b>"};
	int status = smalti_shard_append(writer, &row, error);
	if (!status && failed)
		status = smalti_shard_fail(writer, &failure, error);
	for (int i = 0; i < 5; i++)
		free(kept[i]);
	return status;
}

static int fill_range(const struct features_directory *f, struct smalti_store *store,
		      const struct smalti_range *range, struct smalti_error *error)
{
	const struct smalti_shard_schema schema = {
	    .dtype = f->dtype,
	    .caption_count = f->caption_count,
	    .captions = {f->captions[0], f->captions[1]},
	    .text_width = f->caption_count ? f->text_width : 0,
	    .max_tokens = f->caption_count ? f->max_tokens : 0,
	    .latent_channels = f->latent_channels,
	    .image_size = f->latent_channels ? IMAGE_SIZE : 0,
	    .scaling_factor = f->latent_channels ? 0.13025 : 0,
	    .compress = f->compress,
	    .provenance = "{\"model\":\"none\"}",
	};
	const struct smalti_shard_timing timing = {1.7e9, 1.7e9 + 1, 0.5, 0.25, 10, 20};
	struct smalti_shard_writer *writer = smalti_store_begin(store, range, &schema, error);
	int status = writer ? 0 : -1;
	for (int64_t i = range->first; i < range->end && !status; i++)
		status = append(f, writer, i, error);
	bool lost = false;
	if (!status)
		return smalti_store_commit(store, range, writer, &timing, &lost, error);
	smalti_store_abandon(store, range, writer);
	return -1;
}

int make_features_directory(const char *path, const struct features_directory *f, struct smalti_error *error)
{
	cJSON *identity = cJSON_CreateObject();
	cJSON_AddStringToObject(identity, "test", "features");
	const struct smalti_store_options options = {.identity = identity};
	struct smalti_store *store = smalti_store_open(path, &options, error);
	const struct smalti_range all = {0, f->count};
	int status = store ? 0 : -1;
	for (enum smalti_claim_status claim = SMALTI_CLAIM_TAKEN; !status && claim == SMALTI_CLAIM_TAKEN;) {
		struct smalti_range range;
		char holder[256];
		claim = smalti_store_claim(store, &all, f->shard_items, &range, NULL, holder, error);
		if (claim == SMALTI_CLAIM_TAKEN)
			status = fill_range(f, store, &range, error);
		else if (claim != SMALTI_CLAIM_NONE)
			status = -1;
	}
	smalti_store_close(store);
	cJSON_Delete(identity);
	return status;
}
