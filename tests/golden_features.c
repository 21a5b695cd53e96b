/* SPDX-License-Identifier: Apache-2.0 */
#include "golden_features.h"

#include "golden.h"
#include "shards.h"
#include "store/store.h"

static const struct smalti_tensor_view *part_of(const struct golden_features *features, int64_t item,
						const char *part)
{
	char name[64];
	snprintf(name, sizeof(name), "%s%" PRId64 ".%s", features->kind, item, part);
	return smalti_safetensors_find(features->file, name);
}

static int64_t count_items(const struct golden_features *features)
{
	int64_t count = 0;
	while (part_of(features, count, "mean"))
		count++;
	return count;
}

static int add_row(struct smalti_shard_writer *writer, const struct golden_features *features, int64_t item,
		   struct smalti_error *error)
{
	const struct smalti_tensor_view *mean = part_of(features, item, "mean"),
					*std = part_of(features, item, "std"),
					*text = part_of(features, item, "text");
	const int64_t tokens = text->shape[0];
	const bool lacks = features->lacking && item % features->lacking == features->lacking - 1;
	char *moments = malloc((size_t)(2 * mean->bytes));
	int32_t *ids = malloc((size_t)tokens * sizeof(*ids));
	memcpy(moments, mean->data, (size_t)mean->bytes);
	memcpy(moments + mean->bytes, std->data, (size_t)mean->bytes);
	for (int64_t i = 0; i < tokens; i++)
		ids[i] = i == tokens - 1 ? 1 : 3;
	const struct smalti_features_row row = {
	    .index = item,
	    .key = mean->name,
	    .texts = {{tokens, ids, text->data}, {1, ids, text->data}},
	    .image = {.height = 8 * mean->shape[1],
		      .width = 8 * mean->shape[2],
		      .ratio = (double)mean->shape[1] / (double)mean->shape[2],
		      .latent_height = lacks ? 0 : mean->shape[1],
		      .latent_width = lacks ? 0 : mean->shape[2],
		      .values = moments}};
	const int status = smalti_shard_append(writer, &row, error);
	free(moments);
	free(ids);
	return status;
}

static int fill(struct smalti_store *store, const struct golden_features *features,
		struct smalti_error *error)
{
	const struct smalti_shard_schema schema = {.dtype = SMALTI_F16,
						   .caption_count = features->beginnings ? 2 : 1,
						   .captions = {"prompt", "begin"},
						   .text_width = part_of(features, 0, "text")->shape[1],
						   .max_tokens = 300,
						   .latent_channels = part_of(features, 0, "mean")->shape[0],
						   .image_size = 256,
						   .scaling_factor = features->scaling_factor,
						   .provenance = "{}"};
	const struct smalti_range all = {0, count_items(features)};
	struct smalti_range range;
	char holder[256];
	bool lost = false;
	if (smalti_store_claim(store, &all, all.end, &range, NULL, holder, error) != SMALTI_CLAIM_TAKEN)
		return -1;
	struct smalti_shard_writer *writer = smalti_store_begin(store, &range, &schema, error);
	int status = writer ? 0 : -1;
	for (int64_t i = 0; i < all.end && status == 0; i++)
		status = add_row(writer, features, i, error);
	if (status == 0)
		return smalti_store_commit(store, &range, writer, &made_timing, &lost, error);
	smalti_store_abandon(store, &range, writer);
	return -1;
}

int make_golden_features(const char *directory, const struct golden_features *features,
			 struct smalti_error *error)
{
	cJSON *identity = cJSON_CreateObject();
	cJSON_AddStringToObject(cJSON_AddObjectToObject(identity, "text"), "model", features->text_model);
	cJSON_AddStringToObject(cJSON_AddObjectToObject(identity, "pictures"), "model", "golden");
	const struct smalti_store_options options = {.identity = identity};
	struct smalti_store *store = smalti_store_open(directory, &options, error);
	const int status = store ? fill(store, features, error) : -1;
	smalti_store_close(store);
	cJSON_Delete(identity);
	return status;
}
