/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/gguf.h"
#include "base/utf8.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/pipeline_directory.h"

enum {
	MAX_AXES = 4,
	MAX_DEPTH = 4,       /* of arrays in arrays */
	MAX_PAIRS = 1 << 14, /* of metadata */
	MAX_TENSORS = 1 << 16,
	MAX_NAME = 255,
	MAX_TEXT = 1 << 20, /* of a metadata string that is kept */
	ALIGNMENT = 32,
};

/* The types of metadata. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };
static const int sizes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* What is left of the header. A read beyond the end makes zeros, and `failed`. */
struct cursor {
	const unsigned char *at, *end;
	bool failed;
};

/* Takes `bytes` bytes; NULL if there are not that many. */
static const unsigned char *take(struct cursor *cursor, uint64_t bytes)
{
	const unsigned char *at = cursor->at;
	cursor->failed = cursor->failed || bytes > (uint64_t)(cursor->end - at);
	if (cursor->failed)
		return NULL;
	cursor->at += bytes;
	return at;
}

static uint64_t take_integer(struct cursor *cursor, int bytes)
{
	const unsigned char *at = take(cursor, (uint64_t)bytes);
	uint64_t value = 0;
	for (int i = 0; at && i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

/* Takes a string of at most `most` bytes; a longer one is taken, too, but NULL. */
static const char *take_string(struct cursor *cursor, uint64_t most, size_t *length)
{
	const uint64_t bytes = take_integer(cursor, 8);
	const char *text = (const char *)take(cursor, bytes);
	*length = (size_t)bytes;
	return bytes <= most ? text : NULL;
}

static double number_of(uint64_t bits, uint32_t type)
{
	const uint32_t low = (uint32_t)bits;
	float single;
	double wide;
	switch (type) {
	case I8:
		return (double)(int8_t)bits;
	case I16:
		return (double)(int16_t)bits;
	case I32:
		return (double)(int32_t)bits;
	case I64:
		return (double)(int64_t)bits;
	case F32:
		memcpy(&single, &low, sizeof(single));
		return (double)single;
	case F64:
		memcpy(&wide, &bits, sizeof(wide));
		return wide;
	default:
		return (double)bits;
	}
}

static void skip_array(struct cursor *cursor, int depth)
{
	const uint32_t type = (uint32_t)take_integer(cursor, 4);
	const uint64_t count = take_integer(cursor, 8), left = (uint64_t)(cursor->end - cursor->at);
	size_t length;
	/* A value has at least a byte. */
	cursor->failed = cursor->failed || type >= TYPES || count > left || depth == MAX_DEPTH;
	if (cursor->failed)
		return;
	if (sizes[type]) {
		take(cursor, count * (uint64_t)sizes[type]);
		return;
	}
	for (uint64_t i = 0; i < count && !cursor->failed; i++)
		if (type == STRING)
			take_string(cursor, 0, &length);
		else
			skip_array(cursor, depth + 1);
}

/* Makes a text of a string, without NULs; NULL without memory. */
static char *copy_text(const char *text, size_t length, struct smalti_error *error)
{
	char *copy = smalti_calloc((int64_t)length + 1, 1, error);
	for (size_t i = 0; copy && i < length; i++)
		copy[i] = text[i] ? text[i] : '?';
	return copy;
}

static int add_string(cJSON *metadata, const char *key, struct cursor *cursor, struct smalti_error *error)
{
	size_t length;
	const char *text = take_string(cursor, MAX_TEXT, &length);
	if (!text)
		return 0;
	SCOPED(free) char *copy = copy_text(text, length, error);
	if (!copy)
		return -1;
	return smalti_json_add_text(metadata, key, copy)
		   ? 0
		   : smalti_fail(error, SMALTI_ENOMEM, "no memory for metadata");
}

static int read_value(cJSON *metadata, const char *key, struct cursor *cursor, struct smalti_error *error)
{
	const uint32_t type = (uint32_t)take_integer(cursor, 4);
	if (type >= TYPES)
		return smalti_fail(error, SMALTI_EFORMAT, "key %s: a value of the unknown type %u", key,
				   type);
	if (type == STRING)
		return add_string(metadata, key, cursor, error);
	if (type == ARRAY) {
		skip_array(cursor, 0);
		return 0;
	}
	const uint64_t bits = take_integer(cursor, sizes[type]);
	const cJSON *added = type == BOOL ? cJSON_AddBoolToObject(metadata, key, bits != 0)
					  : cJSON_AddNumberToObject(metadata, key, number_of(bits, type));
	return added ? 0 : smalti_fail(error, SMALTI_ENOMEM, "no memory for metadata");
}

/* Takes a name without NULs into `name`; false if there is none. */
static bool take_name(struct cursor *cursor, char name[MAX_NAME + 1])
{
	size_t length;
	const char *text = take_string(cursor, MAX_NAME, &length);
	if (!text || !length || memchr(text, 0, length) || !smalti_utf8_valid(text, length))
		return false;
	snprintf(name, MAX_NAME + 1, "%.*s", (int)length, text);
	return true;
}

static int read_metadata(struct smalti_gguf *file, struct cursor *cursor, uint64_t pairs,
			 struct smalti_error *error)
{
	file->metadata = cJSON_CreateObject();
	if (!file->metadata)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for metadata");
	for (uint64_t i = 0; i < pairs; i++) {
		char key[MAX_NAME + 1];
		if (!take_name(cursor, key))
			return smalti_fail(error, SMALTI_EFORMAT,
					   "pair %llu of the metadata has no key of 1 to %d bytes of UTF-8",
					   (unsigned long long)i, MAX_NAME);
		if (read_value(file->metadata, key, cursor, error))
			return -1;
		if (cursor->failed)
			return smalti_fail(error, SMALTI_EFORMAT, "key %s: cut short", key);
	}
	return 0;
}

/* Reads the extents, whose fastest comes first, and checks that rows are whole blocks. */
static int read_shape(struct smalti_tensor_view *view, struct cursor *cursor, struct smalti_error *error)
{
	const uint64_t axes = take_integer(cursor, 4);
	if (axes < 1 || axes > MAX_AXES)
		return smalti_fail(error, SMALTI_EFORMAT, "tensor %s has %llu axes: expected 1 to %d",
				   view->name, (unsigned long long)axes, MAX_AXES);
	view->rank = (int)axes;
	for (int i = view->rank - 1; i >= 0; i--) {
		const uint64_t extent = take_integer(cursor, 8);
		if (extent > INT64_MAX)
			return smalti_fail(error, SMALTI_EFORMAT, "tensor %s: an extent is beyond 63 bits",
					   view->name);
		view->shape[i] = (int64_t)extent;
	}
	return 0;
}

static int set_type(struct smalti_tensor_view *view, uint32_t number, struct smalti_error *error)
{
	const struct smalti_gguf_type *type = smalti_gguf_type(number);
	if (!type)
		return smalti_fail(error, SMALTI_EUNSUPPORTED, "tensor %s has the unknown type %u",
				   view->name, number);
	const struct smalti_coding *coding = &type->coding;
	const int64_t last = view->shape[view->rank - 1];
	if (last % coding->values)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "tensor %s is %s, whose blocks of %lld values do not divide its rows of %lld", view->name,
		    coding->name, (long long)coding->values, (long long)last);
	int64_t elements = 1;
	bool fits = smalti_multiply_extents(&elements, view->shape, view->rank);
	view->bytes = elements / coding->values;
	fits = fits && smalti_multiply(&view->bytes, coding->block_bytes);
	view->usable = type->usable;
	view->dtype = type->dtype;
	view->stored = coding->name;
	view->coding = coding->decode ? coding : NULL;
	return fits ? 0
		    : smalti_fail(error, SMALTI_EFORMAT, "tensor %s has more than 2^63 bytes", view->name);
}

/* Reads the description of a tensor; *offset is its place behind the header. */
static int read_tensor(struct smalti_tensor_view *view, char name[MAX_NAME + 1], struct cursor *cursor,
		       uint64_t *offset, struct smalti_error *error)
{
	if (!take_name(cursor, name))
		return smalti_fail(error, SMALTI_EFORMAT, "a tensor has no name of 1 to %d bytes of UTF-8",
				   MAX_NAME);
	view->name = name;
	if (read_shape(view, cursor, error))
		return -1;
	const uint32_t type = (uint32_t)take_integer(cursor, 4);
	*offset = take_integer(cursor, 8);
	if (cursor->failed)
		return smalti_fail(error, SMALTI_EFORMAT, "tensor %s: cut short", name);
	return set_type(view, type, error);
}

/* Reads the alignment of the tensors; 0 with an error. */
static int64_t read_alignment(const cJSON *metadata, struct smalti_error *error)
{
	int64_t alignment = ALIGNMENT;
	if (smalti_json_int(metadata, "general.alignment", SMALTI_JSON_OPTIONAL, 1, 1 << 20, &alignment,
			    error))
		return 0;
	if (alignment & (alignment - 1)) {
		smalti_fail(error, SMALTI_EFORMAT, "\"general.alignment\" %lld is no power of two",
			    (long long)alignment);
		return 0;
	}
	return alignment;
}

static int place(struct smalti_tensor_view *view, const unsigned char *data, int64_t available,
		 uint64_t offset, int64_t alignment, struct smalti_error *error)
{
	if (offset % (uint64_t)alignment || offset > (uint64_t)available ||
	    view->bytes > available - (int64_t)offset)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "tensor %s: %lld bytes at %llu of the data, which has %lld: expected in it, at a "
		    "multiple of %lld",
		    view->name, (long long)view->bytes, (unsigned long long)offset, (long long)available,
		    (long long)alignment);
	view->data = data + offset;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct smalti_tensor_view *x = a, *y = b;
	if (x->data != y->data)
		return (const char *)x->data < (const char *)y->data ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Checks that no two tensors overlap, nor have one name; sorts by names. */
static int check_all(struct smalti_tensor_view *tensors, int64_t count, struct smalti_error *error)
{
	qsort(tensors, (size_t)count, sizeof(*tensors), by_place);
	for (int64_t i = 1; i < count; i++)
		if ((const char *)tensors[i - 1].data + tensors[i - 1].bytes > (const char *)tensors[i].data)
			return smalti_fail(error, SMALTI_EFORMAT, "tensors %s and %s overlap",
					   tensors[i - 1].name, tensors[i].name);
	qsort(tensors, (size_t)count, sizeof(*tensors), smalti_by_name);
	for (int64_t i = 1; i < count; i++)
		if (!strcmp(tensors[i - 1].name, tensors[i].name))
			return smalti_fail(error, SMALTI_EFORMAT, "tensor %s is there twice",
					   tensors[i].name);
	return 0;
}

static int read_tensors(struct smalti_gguf *file, struct cursor *cursor, const unsigned char *begin,
			uint64_t count, struct smalti_error *error)
{
	const int64_t alignment = read_alignment(file->metadata, error), all = cursor->end - begin;
	file->tensors = smalti_calloc((int64_t)count, sizeof(*file->tensors), error);
	file->names = smalti_calloc((int64_t)count, MAX_NAME + 1, error);
	SCOPED(free) uint64_t *offsets = smalti_calloc((int64_t)count, sizeof(*offsets), error);
	if (!alignment || !file->tensors || !file->names || !offsets)
		return -1;
	for (uint64_t i = 0; i < count; i++)
		if (read_tensor(&file->tensors[i], file->names + i * (MAX_NAME + 1), cursor, &offsets[i],
				error))
			return -1;
	file->header_bytes = smalti_min(smalti_round_up(cursor->at - begin, alignment), all);
	for (uint64_t i = 0; i < count; i++)
		if (place(&file->tensors[i], begin + file->header_bytes, all - file->header_bytes, offsets[i],
			  alignment, error))
			return -1;
	file->count = (int64_t)count;
	return check_all(file->tensors, file->count, error);
}

static int parse(struct smalti_gguf *file, const struct smalti_map *map, struct smalti_error *error)
{
	static const char magic[] = "GGUF";
	const unsigned char *begin = map->data;
	if (map->size && smalti_pointer_check(begin, (size_t)map->size, error))
		return -1;
	if (map->size < 4 || memcmp(begin, magic, 4) != 0)
		return smalti_fail(error, SMALTI_EFORMAT, "not a GGUF file: it does not begin with %s",
				   magic);
	struct cursor cursor = {begin + 4, begin + map->size, false};
	const uint32_t version = (uint32_t)take_integer(&cursor, 4);
	if (version != 2 && version != 3)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "GGUF of version %u: versions 2 and 3, little-endian, are read", version);
	const uint64_t tensors = take_integer(&cursor, 8), pairs = take_integer(&cursor, 8);
	if (cursor.failed || tensors > MAX_TENSORS || pairs > MAX_PAIRS)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%llu tensors and %llu pairs of metadata: at most %d and %d are read",
				   (unsigned long long)tensors, (unsigned long long)pairs, MAX_TENSORS,
				   MAX_PAIRS);
	return read_metadata(file, &cursor, pairs, error)
		   ? -1
		   : read_tensors(file, &cursor, begin, tensors, error);
}

struct smalti_gguf *smalti_gguf_parse(const void *data, int64_t size, struct smalti_error *error)
{
	struct smalti_gguf *file = smalti_calloc(1, sizeof(*file), error);
	if (file && parse(file, &(struct smalti_map){data, size}, error) == 0)
		return file;
	smalti_gguf_close(file);
	return NULL;
}

struct smalti_gguf *smalti_gguf_open(const char *path, struct smalti_error *error)
{
	struct smalti_map map;
	if (smalti_map_open(&map, path, error))
		return NULL;
	struct smalti_gguf *file = smalti_gguf_parse(map.data, map.size, error);
	if (!file)
		smalti_error_prefix(error, "%s", path);
	if (smalti_map_check(&map, error) == 0 && file) {
		file->map = map;
		return file;
	}
	smalti_gguf_close(file);
	smalti_map_close(&map);
	return NULL;
}

void smalti_gguf_close(struct smalti_gguf *file)
{
	if (!file)
		return;
	cJSON_Delete(file->metadata);
	free(file->tensors);
	free(file->names);
	smalti_map_close(&file->map);
	free(file);
}
