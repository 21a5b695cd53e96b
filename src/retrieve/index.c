/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/index.h"
#include "base/sealed.h"

#include <xxhash.h>

const char *const smalti_index_files[SMALTI_INDEX_FILES] = {"vectors.safetensors", "items.jsonl"};
const char smalti_index_description[] = "index.json";
const char *const smalti_index_kinds[] = {
    [SMALTI_INDEX_CAPTIONS] = "captions", [SMALTI_INDEX_IMAGES] = "images", NULL};

enum { MOST = INT32_MAX };
static const char remedy[] = "make the index anew";

char *smalti_index_key_text(const char *key, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	SCOPED(free)
	char *text = smalti_json_add_text(object, "key", key) ? cJSON_PrintUnformatted(object) : NULL;
	if (text)
		return smalti_format(error, ",%s", text + 1);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a key");
	return NULL;
}

static int read_description(struct smalti_index *index, struct smalti_error *error)
{
	const cJSON *object = index->description;
	int kind;
	struct smalti_index_info *info = &index->info;
	if (smalti_json_check_format(object, SMALTI_INDEX_FORMAT, SMALTI_INDEX_VERSION,
				     ": make the index anew", error) < 0)
		return -1;
	if (smalti_json_choice(object, "kind", SMALTI_JSON_REQUIRED, smalti_index_kinds, &kind, error) < 0 ||
	    smalti_json_string(object, "features", SMALTI_JSON_REQUIRED, &info->features, error) < 0 ||
	    smalti_json_string(object, "caption", SMALTI_JSON_OPTIONAL, &info->caption, error) < 0 ||
	    smalti_json_int(object, "items", SMALTI_JSON_REQUIRED, 1, MOST, &info->items, error) < 0 ||
	    smalti_json_int(object, "dim", SMALTI_JSON_REQUIRED, 1, MOST, &info->dim, error) < 0)
		return -1;
	info->kind = (enum smalti_index_kind)kind;
	info->projected = cJSON_GetObjectItemCaseSensitive(object, "projections");
	index->model = cJSON_GetObjectItemCaseSensitive(object, "model");
	if (info->kind == SMALTI_INDEX_CAPTIONS && !info->caption)
		return smalti_fail(error, SMALTI_EFORMAT, "\"caption\" is missing");
	return 0;
}

static int open_vectors(struct smalti_index *index, const char *path, struct smalti_error *error)
{
	const int64_t dim = index->info.dim;
	index->file = smalti_safetensors_open(path, error);
	if (!index->file ||
	    smalti_files_tensor(index->file, path, "vectors", 2, (int64_t[]){index->info.items, dim},
				&index->vectors, error) < 0)
		return -1;
	if (index->info.kind == SMALTI_INDEX_CAPTIONS || index->info.projected)
		return 0;
	return smalti_files_tensor(index->file, path, "mean", 1, (int64_t[]){dim}, &index->mean, error) < 0 ||
		       smalti_files_tensor(index->file, path, "whitening", 2, (int64_t[]){dim, dim},
					   &index->whitening, error) < 0
		   ? -1
		   : 0;
}

static int by_digest(const void *a, const void *b)
{
	const struct smalti_index_key *one = a, *other = b;
	return (one->digest > other->digest) - (one->digest < other->digest);
}

/* Finds the key behind the line's first number. */
static const char *key_of_line(const struct smalti_index *index, int64_t number, int64_t *length)
{
	const char *text = index->items.data, *line = text + index->lines[number],
		   *end = text + index->lines[number + 1] - 1;
	const char *key = memchr(line, ',', (size_t)(end - line));
	*length = key ? end - key : 0;
	return key;
}

static int list_keys(struct smalti_index *index, struct smalti_error *error)
{
	index->keys = smalti_calloc(index->info.items, sizeof(*index->keys), error);
	if (!index->keys)
		return -1;
	for (int64_t i = 0; i < index->info.items; i++) {
		int64_t length;
		const char *key = key_of_line(index, i, &length);
		index->keys[i] = (struct smalti_index_key){key ? XXH3_64bits(key, (size_t)length) : 0, i};
	}
	qsort(index->keys, (size_t)index->info.items, sizeof(*index->keys), by_digest);
	return 0;
}

static int open_items(struct smalti_index *index, const char *path, struct smalti_error *error)
{
	if (smalti_map_open(&index->items, path, error) < 0)
		return -1;
	const char *text = index->items.data, *at = text;
	int64_t count = 0;
	index->lines = smalti_calloc(index->info.items + 1, sizeof(*index->lines), error);
	if (!index->lines)
		return -1;
	while (count < index->info.items && at < text + index->items.size) {
		const char *end = memchr(at, '\n', (size_t)(text + index->items.size - at));
		if (!end)
			break;
		at = end + 1;
		index->lines[++count] = at - text;
	}
	if (count < index->info.items || at != text + index->items.size)
		return smalti_fail(error, SMALTI_EFORMAT, "%s: expected %" PRId64 " lines", path,
				   index->info.items);
	return list_keys(index, error);
}

static int open_files(struct smalti_index *index, struct smalti_error *error)
{
	static int (*const openers[])(struct smalti_index *, const char *, struct smalti_error *) = {
	    [SMALTI_INDEX_VECTORS] = open_vectors, [SMALTI_INDEX_ITEMS] = open_items};
	for (int i = 0; i < SMALTI_INDEX_FILES; i++) {
		SCOPED(free)
		char *path = smalti_format(error, "%s/%s", index->directory, smalti_index_files[i]);
		if (!path ||
		    smalti_files_check(index->description, smalti_index_description, index->directory,
				       smalti_index_files[i], remedy, error) < 0 ||
		    openers[i](index, path, error) < 0)
			return -1;
	}
	if (!index->info.projected)
		return 0;
	if (smalti_projections_read(&index->projections, index->description, smalti_index_description,
				    index->directory, remedy, error) < 0)
		return -1;
	return index->projections.dim == index->info.dim
		   ? 0
		   : smalti_fail(error, SMALTI_EFORMAT,
				 "%s/%s: its vectors have %" PRId64 " values, its projections %" PRId64,
				 index->directory, smalti_index_description, index->info.dim,
				 index->projections.dim);
}

static int open_index(struct smalti_index *index, const char *directory, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, smalti_index_description);
	index->directory = smalti_format(error, "%s", directory);
	const int found = path && index->directory ? smalti_find_file(path, error) : -1;
	if (found < 0)
		return -1;
	if (!found)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%s: no index, for it has no %s; smalti retrieve index makes one",
				   directory, smalti_index_description);
	index->description = smalti_sealed_read(path, error);
	if (!index->description)
		return -1;
	if (read_description(index, error) == 0)
		return open_files(index, error);
	smalti_error_prefix(error, "%s", path);
	return -1;
}

int smalti_index_check(const struct smalti_index *index, struct smalti_error *error)
{
	const struct smalti_safetensors *const files[] = {index->file, index->projections.file};
	int status = smalti_map_check(&index->items, error);
	for (size_t i = 0; i < COUNT_OF(files) && status == 0; i++)
		status = files[i] ? smalti_safetensors_check(files[i], error) : 0;
	return status;
}

struct smalti_index *smalti_index_open(const char *directory, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_text(directory, "directory of an index", error) < 0)
		return NULL;
	struct smalti_index *index = smalti_calloc(1, sizeof(*index), error);
	const int status = index ? open_index(index, directory, error) : -1;
	if (index && smalti_index_check(index, error) == 0 && status == 0)
		return index;
	smalti_index_close(index);
	return NULL;
}

void smalti_index_close(struct smalti_index *index)
{
	if (!index)
		return;
	smalti_safetensors_close(index->file);
	smalti_projections_close(&index->projections);
	smalti_map_close(&index->items);
	cJSON_Delete(index->description);
	free(index->directory);
	free(index->lines);
	free(index->keys);
	free(index);
}

void smalti_index_info(const struct smalti_index *index, struct smalti_index_info *info)
{
	*info = index->info;
}

int smalti_index_item(const struct smalti_index *index, int64_t number, struct smalti_index_item *item,
		      struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(index, "index", error) < 0 ||
	    smalti_check_given(item, "item to fill", error) < 0 ||
	    smalti_check_range(number, 0, index->info.items - 1, "item's number", error) < 0)
		return -1;
	const char *line = (const char *)index->items.data + index->lines[number];
	SCOPED(cJSON_Delete)
	cJSON *object =
	    smalti_json_parse(line, (size_t)(index->lines[number + 1] - index->lines[number]), error);
	const char *key;
	if (!object ||
	    smalti_json_int(object, "index", SMALTI_JSON_REQUIRED, 0, INT64_C(1) << 53, &item->index, error) <
		0 ||
	    smalti_json_string(object, "key", SMALTI_JSON_REQUIRED, &key, error) < 0) {
		smalti_error_prefix(error, "%s/%s:%" PRId64, index->directory,
				    smalti_index_files[SMALTI_INDEX_ITEMS], number + 1);
		smalti_map_check(&index->items, error);
		return -1;
	}
	item->key = smalti_format(error, "%s", key);
	return item->key ? 0 : -1;
}

int64_t smalti_index_find(const struct smalti_index *index, const char *key, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(index, "index", error) < 0 || smalti_check_given(key, "key", error) < 0)
		return -1;
	SCOPED(free) char *text = smalti_index_key_text(key, error);
	if (!text)
		return -1;
	const struct smalti_index_key wanted = {.digest = XXH3_64bits(text, strlen(text))};
	const struct smalti_index_key *found =
	    bsearch(&wanted, index->keys, (size_t)index->info.items, sizeof(wanted), by_digest);
	if (found)
		return found->number;
	return smalti_fail(error, SMALTI_EINVAL, "%s: has no item '%s'", index->directory, key);
}

void smalti_index_vector(const struct smalti_index *index, int64_t number, float *query)
{
	memcpy(query, index->vectors + number * index->info.dim, (size_t)index->info.dim * sizeof(*query));
}
