/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/weights.h"

#include "base/base.h"
#include "base/file.h"
#include "base/json.h"
#include "bench/fill.h"

#include <stdlib.h>

struct work {
	const char *directory, *stem;
	const struct smalti_inventory *inventory;
	const struct smalti_advance *advance;
	float *values;
	void *narrow; /* the same in the files' dtype */
	int first;    /* tensor of the file that is being written */
};

static const void *next_piece(void *user, int index, int64_t first, int64_t count, struct smalti_error *error)
{
	struct work *work = user;
	const int k = work->first + index;
	const struct smalti_tensor_view *tensor = &work->inventory->tensors[k];
	const struct smalti_advance *advance = work->advance;
	if (advance->moved && advance->moved(advance->user, count * smalti_dtype_bytes(tensor->dtype))) {
		smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped", work->directory);
		return NULL;
	}
	const struct smalti_fill fill = smalti_fill_of(tensor, k);
	smalti_fill(&fill, first, count, work->values);
	smalti_narrow(tensor->dtype, work->values, count, work->narrow);
	return work->narrow;
}

/* Returns the tensor after the last that fits into a shard with `first`. */
static int shard_end(const struct smalti_inventory *inventory, int first, int64_t limit)
{
	int64_t left = limit - inventory->tensors[first].bytes;
	int end = first + 1;
	while (end < inventory->count && inventory->tensors[end].bytes <= left)
		left -= inventory->tensors[end++].bytes;
	return end;
}

static int count_shards(const struct smalti_inventory *inventory, int64_t limit)
{
	int shards = 0;
	for (int first = 0; first < inventory->count; first = shard_end(inventory, first, limit))
		shards++;
	return shards;
}

static char *shard_name(const char *stem, int shard, int shards, struct smalti_error *error)
{
	return shards == 1 ? smalti_format(error, "%s.safetensors", stem)
			   : smalti_format(error, "%s-%05d-of-%05d.safetensors", stem, shard + 1, shards);
}

/* Writes tensors `first` to `end` and notes in `map` where they are. */
static int write_shard(struct work *work, const char *name, int first, int end, cJSON *map,
		       struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/%s", work->directory, name);
	work->first = first;
	int status = path ? smalti_safetensors_stream(path, work->inventory->tensors + first, end - first,
						      work->advance ? next_piece : NULL, work, error)
			  : -1;
	free(path);
	for (int k = first; k < end && !status; k++)
		if (!cJSON_AddStringToObject(map, work->inventory->tensors[k].name, name))
			status = smalti_fail(error, SMALTI_ENOMEM, "out of memory for an index of shards");
	return status;
}

static int write_shards(struct work *work, int64_t limit, int shards, cJSON *map, struct smalti_error *error)
{
	int first = 0, status = 0;
	for (int shard = 0; shard < shards && !status; shard++) {
		const int end = shard_end(work->inventory, first, limit);
		char *name = shard_name(work->stem, shard, shards, error);
		status = name ? write_shard(work, name, first, end, map, error) : -1;
		free(name);
		first = end;
	}
	return status;
}

static int write_index(const struct work *work, const cJSON *index, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/%s.safetensors.index.json", work->directory, work->stem);
	int status = path ? smalti_json_write(path, index, error) : -1;
	free(path);
	return status;
}

static int write_files(struct work *work, int64_t limit, struct smalti_error *error)
{
	const int shards = count_shards(work->inventory, limit);
	int64_t bytes = 0;
	for (int k = 0; k < work->inventory->count; k++)
		bytes += work->inventory->tensors[k].bytes;
	cJSON *index = cJSON_CreateObject();
	cJSON *metadata = cJSON_AddObjectToObject(index, "metadata");
	cJSON *map = cJSON_AddObjectToObject(index, "weight_map");
	int status;
	if (!map || !cJSON_AddNumberToObject(metadata, "total_size", (double)bytes))
		status = smalti_fail(error, SMALTI_ENOMEM, "out of memory for an index of shards");
	else
		status = write_shards(work, limit, shards, map, error);
	if (!status && shards > 1)
		status = write_index(work, index, error);
	cJSON_Delete(index);
	return status;
}

int smalti_weights_write(const char *directory, const char *stem, const struct smalti_inventory *inventory,
			 int64_t shard_bytes, const struct smalti_advance *advance,
			 struct smalti_error *error)
{
	struct work work = {.directory = directory, .stem = stem, .inventory = inventory, .advance = advance};
	work.values = smalti_calloc(SMALTI_SOURCE_ELEMENTS, sizeof(float), error);
	work.narrow = smalti_calloc(SMALTI_SOURCE_ELEMENTS, sizeof(float), error);
	int status = work.values && work.narrow ? write_files(&work, shard_bytes, error) : -1;
	free(work.values);
	free(work.narrow);
	return status;
}
