/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/safetensors.h"
#include "checkpoint/pipeline_directory.h"

/* Headers of real files are below 1 MiB; parsed JSON takes about thirty times the memory of its text. */
enum { LENGTH_BYTES = 8, MAX_HEADER = 16 << 20 };

struct range {
	int64_t begin, end;
	const char *name;
};

static const struct stored_dtype {
	const char *name;
	int64_t bytes; /* 0: below a byte per element, the size is not checked */
	enum smalti_dtype dtype;
	bool usable;
	const struct smalti_coding *coding;
} stored_dtypes[] = {
    {"F32", 4, SMALTI_F32, true, NULL},
    {"F16", 2, SMALTI_F16, true, NULL},
    {"BF16", 2, SMALTI_BF16, true, NULL},
    {.name = "F64", .bytes = 8},
    {.name = "C64", .bytes = 8},
    {.name = "I64", .bytes = 8},
    {.name = "I32", .bytes = 4},
    {.name = "I16", .bytes = 2},
    {.name = "I8", .bytes = 1, .coding = &smalti_coding_i8},
    {.name = "U64", .bytes = 8},
    {.name = "U32", .bytes = 4},
    {.name = "U16", .bytes = 2},
    {.name = "U8", .bytes = 1},
    {.name = "BOOL", .bytes = 1},
    {.name = "F8_E4M3", .bytes = 1, .coding = &smalti_coding_e4m3},
    {.name = "F8_E5M2", .bytes = 1, .coding = &smalti_coding_e5m2},
    {.name = "F8_E8M0", .bytes = 1},
    {.name = "F6_E2M3"},
    {.name = "F6_E3M2"},
    {.name = "F4"},
};

enum { STORED_DTYPES = COUNT_OF(stored_dtypes) };

static int read_dtype(const cJSON *item, const struct stored_dtype **dtype, struct smalti_error *error)
{
	const char *names[STORED_DTYPES + 1] = {NULL};
	int index;
	for (int i = 0; i < STORED_DTYPES; i++)
		names[i] = stored_dtypes[i].name;
	if (smalti_json_choice(item, "dtype", SMALTI_JSON_REQUIRED, names, &index, error))
		return -1;
	*dtype = &stored_dtypes[index];
	return 0;
}

/* Reads a shape. It may be empty, for a scalar; other arrays of the project's JSON files may not. */
static int read_shape(const cJSON *item, struct smalti_tensor_view *view, struct smalti_error *error)
{
	const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
	if (cJSON_IsArray(shape) && !shape->child)
		return 0;
	return smalti_json_ints(item, "shape", SMALTI_JSON_REQUIRED, 0, INT64_MAX, SMALTI_MAX_RANK,
				view->shape, &view->rank, error);
}

static int read_range(const cJSON *item, int64_t available, struct range *range, struct smalti_error *error)
{
	int64_t offsets[2];
	int count;
	if (smalti_json_ints(item, "data_offsets", SMALTI_JSON_REQUIRED, 0, available, 2, offsets, &count,
			     error))
		return -1;
	if (count != 2 || offsets[0] > offsets[1])
		return smalti_fail(error, SMALTI_EFORMAT, "\"data_offsets\" should be [begin, end]");
	*range = (struct range){offsets[0], offsets[1], item->string};
	return 0;
}

static int check_size(const struct smalti_tensor_view *view, const struct stored_dtype *dtype,
		      struct smalti_error *error)
{
	int64_t bytes = smalti_max(dtype->bytes, 1);
	const bool fits = smalti_multiply_extents(&bytes, view->shape, view->rank);
	if (!fits || (dtype->bytes && bytes != view->bytes))
		return smalti_fail(error, SMALTI_EFORMAT, "dtype and shape do not fit its %lld bytes",
				   (long long)view->bytes);
	return 0;
}

static int read_tensor(const cJSON *item, const struct smalti_map *data, struct smalti_tensor_view *view,
		       struct range *range, struct smalti_error *error)
{
	const struct stored_dtype *dtype;
	if (read_dtype(item, &dtype, error) || read_shape(item, view, error) ||
	    read_range(item, data->size, range, error))
		return -1;
	view->name = item->string;
	view->dtype = dtype->dtype;
	view->usable = dtype->usable;
	view->stored = dtype->name;
	view->coding = dtype->coding;
	view->data = (const char *)data->data + range->begin;
	view->bytes = range->end - range->begin;
	return check_size(view, dtype, error);
}

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* Checks that every byte behind the header belongs to exactly one tensor. */
static int check_cover(struct range *ranges, int64_t count, int64_t size, struct smalti_error *error)
{
	qsort(ranges, (size_t)count, sizeof(*ranges), by_begin);
	int64_t end = 0;
	for (int64_t i = 0; i < count; end = ranges[i++].end)
		if (ranges[i].begin != end)
			return smalti_fail(error, SMALTI_EFORMAT, "%s before tensor %.200s",
					   ranges[i].begin < end ? "an overlap" : "a hole", ranges[i].name);
	if (end != size)
		return smalti_fail(error, SMALTI_EFORMAT, "%lld bytes behind the last tensor",
				   (long long)(size - end));
	return 0;
}

static int check_metadata(const cJSON *metadata, struct smalti_error *error)
{
	bool ok = cJSON_IsObject(metadata);
	const cJSON *item;
	cJSON_ArrayForEach (item, metadata)
		ok = ok && cJSON_IsString(item);
	return ok ? 0 : smalti_fail(error, SMALTI_EFORMAT, "__metadata__ should map strings to strings");
}

static int read_tensors(struct smalti_safetensors *file, const struct smalti_map *data, struct range *ranges,
			struct smalti_error *error)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, file->header) {
		if (!strcmp(item->string, "__metadata__")) {
			if (check_metadata(item, error))
				return -1;
			continue;
		}
		if (read_tensor(item, data, &file->tensors[file->count], &ranges[file->count], error)) {
			smalti_error_prefix(error, "tensor %.200s", item->string);
			return -1;
		}
		file->count++;
	}
	if (check_cover(ranges, file->count, data->size, error))
		return -1;
	qsort(file->tensors, (size_t)file->count, sizeof(*file->tensors), smalti_by_name);
	return 0;
}

/* Parses the header as JSON; *data becomes the bytes behind it. */
static cJSON *read_header(const struct smalti_map *map, struct smalti_map *data, struct smalti_error *error)
{
	const unsigned char *bytes = map->data;
	uint64_t length = 0;
	if (map->size < LENGTH_BYTES) {
		smalti_fail(error, SMALTI_EFORMAT, "not a safetensors file: only %lld bytes",
			    (long long)map->size);
		return NULL;
	}
	if (smalti_pointer_check(bytes, (size_t)map->size, error))
		return NULL;
	for (int i = 0; i < LENGTH_BYTES; i++)
		length |= (uint64_t)bytes[i] << (8 * i);
	uint64_t rest = (uint64_t)map->size - LENGTH_BYTES;
	if (length > rest || length > MAX_HEADER) {
		smalti_fail(error, SMALTI_EFORMAT,
			    "not a safetensors file, or cut short: a header of %llu bytes in a file of %lld",
			    (unsigned long long)length, (long long)map->size);
		return NULL;
	}
	const char *text = (const char *)bytes + LENGTH_BYTES;
	if (!length || text[0] != '{') {
		smalti_fail(error, SMALTI_EFORMAT, "not a safetensors file: its header is not an object");
		return NULL;
	}
	*data = (struct smalti_map){text + length, (int64_t)(rest - length)};
	return smalti_json_parse(text, (size_t)length, error);
}

static int parse(struct smalti_safetensors *file, const struct smalti_map *map, struct smalti_error *error)
{
	struct smalti_map data;
	file->header = read_header(map, &data, error);
	if (!file->header)
		return -1;
	int64_t capacity = cJSON_GetArraySize(file->header);
	file->tensors = smalti_calloc(capacity, sizeof(*file->tensors), error);
	SCOPED(free) struct range *ranges = smalti_calloc(capacity, sizeof(*ranges), error);
	return file->tensors && ranges ? read_tensors(file, &data, ranges, error) : -1;
}

struct smalti_safetensors *smalti_safetensors_parse(const void *data, int64_t size,
						    struct smalti_error *error)
{
	struct smalti_safetensors *file = smalti_calloc(1, sizeof(*file), error);
	if (file && parse(file, &(struct smalti_map){data, size}, error) == 0)
		return file;
	smalti_safetensors_close(file);
	return NULL;
}

struct smalti_safetensors *smalti_safetensors_open(const char *path, struct smalti_error *error)
{
	struct smalti_map map;
	if (smalti_map_open(&map, path, error))
		return NULL;
	struct smalti_safetensors *file = smalti_safetensors_parse(map.data, map.size, error);
	if (!file)
		smalti_error_prefix(error, "%s", path);
	if (smalti_map_check(&map, error) == 0 && file) {
		file->map = map;
		return file;
	}
	smalti_safetensors_close(file);
	smalti_map_close(&map);
	return NULL;
}

int smalti_safetensors_check(const struct smalti_safetensors *file, struct smalti_error *error)
{
	return smalti_map_check(&file->map, error);
}

void smalti_safetensors_close(struct smalti_safetensors *file)
{
	if (!file)
		return;
	cJSON_Delete(file->header);
	free(file->tensors);
	smalti_map_close(&file->map);
	free(file);
}

const struct smalti_tensor_view *smalti_safetensors_find(const struct smalti_safetensors *file,
							 const char *name)
{
	struct smalti_tensor_view key = {.name = name};
	return bsearch(&key, file->tensors, (size_t)file->count, sizeof(key), smalti_by_name);
}
