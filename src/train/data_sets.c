/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data_sets.h"
#include "base/sealed.h"
#include "shard/layout.h"
#include "store/directory.h"

#include <xxhash.h>

const struct smalti_shard_schema *smalti_training_sets_schema(const struct smalti_training_sets *sets)
{
	return smalti_shard_info(sets->list->model)->schema;
}

static void widen(struct smalti_shard_extent *max, const struct smalti_shard_extent *extent)
{
	max->tokens = smalti_max(max->tokens, extent->tokens);
	if (extent->latent_height * extent->latent_width <= max->latent_height * max->latent_width)
		return;
	max->latent_height = extent->latent_height;
	max->latent_width = extent->latent_width;
}

static void widen_by_shard(struct smalti_shard_extent *max, const struct smalti_features_set *set,
			   const struct smalti_shard_id *id)
{
	SCOPED(free) char *path = smalti_shard_path(set->directory, id, NULL);
	SCOPED(smalti_shard_close)
	struct smalti_shard *shard = path ? smalti_shard_open_unchecked(path, NULL) : NULL;
	for (int64_t i = id->first; shard && i < smalti_shard_info(shard)->end; i++) {
		const struct smalti_shard_extent extent = smalti_shard_row_extent(shard, i);
		widen(max, &extent);
	}
}

struct smalti_shard_extent smalti_training_sets_extent(const struct smalti_training_sets *sets)
{
	struct smalti_shard_extent max = {0};
	for (int64_t i = 0; i < sets->count; i++)
		for (int64_t shard = 0; shard < sets->list[i].shards.count; shard++)
			widen_by_shard(&max, &sets->list[i], &sets->list[i].shards.entries[shard].id);
	return max;
}

/* Computes the digest of a set's shards. */
static int digest_set(const struct smalti_features_set *set, char text[SMALTI_HEX_DIGITS + 1],
		      struct smalti_error *error)
{
	if (smalti_shards_describe((struct smalti_shards *)&set->shards, set->directory, error) < 0)
		return -1;
	uint64_t digest = 0;
	for (int64_t i = 0; i < set->shards.count; i++) {
		const struct smalti_shard_entry *entry = &set->shards.entries[i];
		const uint64_t facts[] = {digest, (uint64_t)entry->id.first, (uint64_t)entry->id.end,
					  entry->seal};
		digest = XXH3_64bits(facts, sizeof(facts));
	}
	smalti_hex_print(digest, text);
	return 0;
}

/* Adds a set to the run's identity. All sets have to be extracted with equal models. */
static int identify_set(struct smalti_training_sets *sets, const struct smalti_features_set *set,
			struct smalti_error *error)
{
	static const char *const models[] = {"text", "pictures"};
	char digest[SMALTI_HEX_DIGITS + 1];
	SCOPED(cJSON_Delete) cJSON *made = smalti_directory_identity(set->directory, error);
	if (!made || digest_set(set, digest, error) < 0)
		return -1;
	cJSON *all = cJSON_GetObjectItem(sets->identity, "models");
	for (int i = 0; i < 2; i++) {
		const cJSON *part = cJSON_GetObjectItemCaseSensitive(made, models[i]);
		const cJSON *digest_of = cJSON_GetObjectItemCaseSensitive(part, "model");
		const cJSON *first = cJSON_GetObjectItem(all, models[i]);
		if (!cJSON_IsString(digest_of) || cJSON_HasObjectItem(part, "latents_mean"))
			return smalti_fail(
			    error, SMALTI_EUNSUPPORTED,
			    "%s: training needs features of captions and of images, of a VAE without "
			    "statistics of its latents; these are others",
			    set->directory);
		if (!first)
			cJSON_AddStringToObject(all, models[i], digest_of->valuestring);
		else if (strcmp(first->valuestring, digest_of->valuestring) != 0)
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "%s: its features of %s are of the model %s, those of %s of %s: train on "
			    "features of one model",
			    set->directory, i ? "images" : "captions", digest_of->valuestring,
			    sets->list->directory, first->valuestring);
	}
	cJSON_AddItemToArray(cJSON_GetObjectItem(sets->identity, "shards"), cJSON_CreateString(digest));
	return 0;
}

/* Refuses a set of another schema. Sets may have pictures of different resolutions, as one set has pictures
 * of different bins. */
static int check_schema(const struct smalti_training_sets *sets, const struct smalti_features_set *set,
			struct smalti_error *error)
{
	if (!set->model)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no features yet", set->directory);
	const struct smalti_shard_schema *first = smalti_training_sets_schema(sets);
	struct smalti_shard_schema schema = *smalti_shard_info(set->model)->schema;
	schema.image_size = first->image_size;
	const char *other = smalti_shard_schema_difference(&schema, first);
	if (other)
		return smalti_fail(error, SMALTI_EINVAL, "%s: its %s are not those of %s", set->directory,
				   other, sets->list->directory);
	return 0;
}

static int open_sets(struct smalti_training_sets *sets, const char *const *directories, int64_t count,
		     struct smalti_error *error)
{
	sets->identity = cJSON_CreateObject();
	sets->list = smalti_calloc(count, sizeof(*sets->list), error);
	if (!cJSON_AddObjectToObject(sets->identity, "models") ||
	    !cJSON_AddArrayToObject(sets->identity, "shards"))
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the features");
	for (int64_t i = 0, first = 0; sets->list && i < count; i++) {
		struct smalti_features_set *set = &sets->list[sets->count++];
		if (smalti_features_set_open(set, directories[i], error) < 0 ||
		    check_schema(sets, set, error) < 0 || identify_set(sets, set, error) < 0)
			return -1;
		set->first_index = first;
		first += set->shards.entries[set->shards.count - 1].id.end;
		sets->shard_count += set->shards.count;
	}
	return sets->list ? 0 : -1;
}

static int list_rows(struct smalti_training_sets *sets, struct smalti_error *error)
{
	int64_t at = 0;
	sets->rows = smalti_calloc(sets->shard_count, sizeof(*sets->rows), error);
	for (int64_t i = 0; sets->rows && i < sets->count; i++)
		for (int64_t shard = 0; shard < sets->list[i].shards.count; shard++)
			sets->rows[at++] = sets->list[i].rows[shard];
	return sets->rows ? 0 : -1;
}

int smalti_training_sets_open(struct smalti_training_sets *sets, const char *const *directories,
			      int64_t count, struct smalti_error *error)
{
	return open_sets(sets, directories, count, error) < 0 ? -1 : list_rows(sets, error);
}

void smalti_training_sets_close(struct smalti_training_sets *sets)
{
	for (int64_t i = 0; i < sets->count; i++)
		smalti_features_set_close(&sets->list[i]);
	cJSON_Delete(sets->identity);
	free(sets->rows);
	free(sets->list);
}
