/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "shard/index.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_MAX = 1 << 26, ENTRY_MAX = 1 << 23, NUMBERS_PER_PIECE = 4 };
static const int64_t LARGEST = (INT64_C(1) << 53) - 1; /* integer that JSON keeps */
/* No byte of DEFLATE becomes more than 1,032: what claims to is not believed. */
static const int64_t INFLATION_MAX = 1100;

static const char *const dtype_names[] = {"f32", "f16", "bf16", NULL};

/* Writing. */

static bool add_number(cJSON *object, const char *key, double value)
{
	return cJSON_AddNumberToObject(object, key, value);
}

static bool add_place(cJSON *arrays, const struct smalti_shard_index *index, int array)
{
	const struct smalti_shard_place *place = &index->places[array];
	char path[SMALTI_SHARD_PATH];
	smalti_shard_array_path(&index->schema, array, path);
	cJSON *object = cJSON_AddObjectToObject(arrays, path);
	bool ok = object && add_number(object, "count", (double)place->count) &&
		  add_number(object, "bytes", (double)place->entry_bytes) &&
		  add_number(object, "chunk", (double)place->chunk);
	cJSON *pieces = ok ? cJSON_AddArrayToObject(object, "pieces") : NULL;
	ok = pieces;
	for (int64_t i = 0; ok && i < place->piece_count; i++) {
		const struct smalti_shard_piece *piece = &place->pieces[i];
		const int64_t numbers[NUMBERS_PER_PIECE] = {piece->offset, piece->bytes, piece->mask,
							    piece->checksum};
		for (int n = 0; ok && n < NUMBERS_PER_PIECE; n++)
			ok = cJSON_AddItemToArray(pieces, cJSON_CreateNumber((double)numbers[n]));
	}
	return ok;
}

static bool add_schema(cJSON *object, const struct smalti_shard_schema *schema)
{
	cJSON *captions = cJSON_AddArrayToObject(object, "captions");
	bool ok = captions;
	for (int i = 0; ok && i < schema->caption_count; i++)
		ok = cJSON_AddItemToArray(captions, cJSON_CreateString(schema->captions[i]));
	return ok && cJSON_AddStringToObject(object, "dtype", dtype_names[schema->dtype]) &&
	       add_number(object, "text_width", (double)schema->text_width) &&
	       add_number(object, "max_tokens", (double)schema->max_tokens) &&
	       add_number(object, "latent_channels", (double)schema->latent_channels) &&
	       add_number(object, "image_size", (double)schema->image_size) &&
	       add_number(object, "scaling_factor", schema->scaling_factor) &&
	       cJSON_AddBoolToObject(object, "compress", schema->compress) &&
	       cJSON_AddStringToObject(object, "provenance", schema->provenance);
}

static bool add_timing(cJSON *object, const struct smalti_shard_timing *timing)
{
	cJSON *inner = cJSON_AddObjectToObject(object, "timing");
	return inner && add_number(inner, "began", timing->began) &&
	       add_number(inner, "ended", timing->ended) &&
	       add_number(inner, "text_seconds", timing->text_seconds) &&
	       add_number(inner, "picture_seconds", timing->image_seconds) &&
	       add_number(inner, "tokens", (double)timing->tokens) &&
	       add_number(inner, "pixels", (double)timing->pixels);
}

static char *print_index(const struct smalti_shard_index *index, struct smalti_error *error)
{
	cJSON *object = cJSON_CreateObject();
	bool ok = object && add_number(object, "version", SMALTI_SHARD_VERSION) &&
		  add_number(object, "first", (double)index->first) &&
		  add_number(object, "rows", (double)index->rows) && add_schema(object, &index->schema) &&
		  add_timing(object, &index->timing);
	cJSON *arrays = ok ? cJSON_AddObjectToObject(object, "arrays") : NULL;
	ok = arrays;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (ok && smalti_shard_has(&index->schema, array))
			ok = add_place(arrays, index, array);
	char *text = ok ? cJSON_PrintUnformatted(object) : NULL;
	cJSON_Delete(object);
	if (!text)
		smalti_fail(error, SMALTI_ENOMEM, "out of memory for the index of a shard");
	return text;
}

/* Of a mapped file; its pages do not stay this process's own. */
static void hash_pieces(struct smalti_shard_place *place, const char *file)
{
	for (int64_t i = 0; i < place->piece_count; i++) {
		struct smalti_shard_piece *piece = &place->pieces[i];
		piece->checksum = smalti_shard_piece_checksum(file, piece);
		smalti_map_drop(file + piece->offset, piece->bytes);
	}
}

char *smalti_shard_index_seal(struct smalti_shard_index *index, const char *file, int64_t size,
			      int64_t *bytes, struct smalti_error *error)
{
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_is_compressed(index, array))
			hash_pieces(&index->places[array], file);
	char *text = print_index(index, error);
	char *sealed = text ? smalti_shard_seal_text(index, text, file, size, bytes, error) : NULL;
	free(text);
	return sealed;
}

/* Reading. */

static int damaged(const char *path, const char *what, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ECORRUPT, "its index: %s: %s", path, what);
}

static bool read_number(const cJSON **item, int64_t *value)
{
	const cJSON *found = *item;
	if (!cJSON_IsNumber(found) || !(found->valuedouble >= 0 && found->valuedouble <= (double)LARGEST) ||
	    trunc(found->valuedouble) != found->valuedouble)
		return false;
	*value = (int64_t)found->valuedouble;
	*item = found->next;
	return true;
}

/* A piece lies in the file and is as large as it has to be. */
static bool check_piece(const struct smalti_shard_piece *piece, int64_t chunk_bytes, bool compressed,
			int64_t size)
{
	if (piece->bytes > size || piece->offset > size - piece->bytes)
		return false;
	if (!compressed || piece->mask == 2)
		return piece->bytes == chunk_bytes && (compressed || piece->mask == 0);
	return piece->mask == 0 && chunk_bytes <= CHUNK_MAX && piece->bytes >= chunk_bytes / INFLATION_MAX;
}

static int read_pieces(struct smalti_shard_place *place, const cJSON *array, bool compressed, int64_t size,
		       const char *path, struct smalti_error *error)
{
	int64_t chunk_bytes = place->chunk;
	if (!smalti_multiply(&chunk_bytes, place->entry_bytes) || (place->count > 0) != (place->chunk > 0))
		return damaged(path, "chunks of an impossible size", error);
	const int64_t count = place->count > 0 ? (place->count - 1) / place->chunk + 1 : 0;
	if (!cJSON_IsArray(array) || count > LARGEST / NUMBERS_PER_PIECE ||
	    cJSON_GetArraySize(array) != count * NUMBERS_PER_PIECE)
		return damaged(path, "another number of pieces than its count has", error);
	place->pieces = smalti_calloc(count ? count : 1, sizeof(*place->pieces), error);
	if (!place->pieces)
		return -1;
	place->piece_count = count;
	const cJSON *item = array->child;
	for (int64_t i = 0; i < count; i++) {
		struct smalti_shard_piece *piece = &place->pieces[i];
		if (!read_number(&item, &piece->offset) || !read_number(&item, &piece->bytes) ||
		    !read_number(&item, &piece->mask) || !read_number(&item, &piece->checksum) ||
		    !check_piece(piece, chunk_bytes, compressed, size))
			return damaged(path, "a piece that is not in the file", error);
	}
	return 0;
}

static int read_place(struct smalti_shard_index *index, const cJSON *arrays, int array, int64_t size,
		      struct smalti_error *error)
{
	struct smalti_shard_place *place = &index->places[array];
	char path[SMALTI_SHARD_PATH];
	smalti_shard_array_path(&index->schema, array, path);
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(arrays, path);
	if (!cJSON_IsObject(object))
		return damaged(path, "missing", error);
	if (smalti_json_int(object, "count", SMALTI_JSON_REQUIRED, 0, LARGEST, &place->count, error) ||
	    smalti_json_int(object, "bytes", SMALTI_JSON_REQUIRED, 1, ENTRY_MAX, &place->entry_bytes,
			    error) ||
	    smalti_json_int(object, "chunk", SMALTI_JSON_REQUIRED, 0, LARGEST, &place->chunk, error))
		return -1;
	const int64_t expected = smalti_shard_entry_bytes(&index->schema, array);
	if (expected && place->entry_bytes != expected)
		return damaged(path, "entries of another size than the schema has", error);
	return read_pieces(place, cJSON_GetObjectItemCaseSensitive(object, "pieces"),
			   smalti_shard_is_compressed(index, array), size, path, error);
}

/* Arrays along one axis are equally long, and all but values are in one piece. */
static int check_place(const struct smalti_shard_index *index, int array, struct smalti_error *error)
{
	const struct smalti_shard_kind *kind = smalti_shard_array_kind(array);
	const struct smalti_shard_place *place = &index->places[array];
	int64_t count = place->count;
	if (kind->axis == SMALTI_PER_ROW)
		count = index->rows;
	else if (kind->axis == SMALTI_PER_FAILURE)
		count = index->places[SMALTI_FAILURE_INDEX].count;
	else if (kind->axis == SMALTI_PER_TOKEN)
		count =
		    index->places[smalti_shard_text_array(smalti_shard_array_caption(array), SMALTI_TEXT_IDS)]
			.count;
	if (place->count != count)
		return damaged(kind->path, "another count than its neighbours have", error);
	if (kind->unit != SMALTI_UNIT_VALUE && place->piece_count > 1)
		return damaged(kind->path, "more than one piece", error);
	return 0;
}

static int read_arrays(struct smalti_shard_index *index, int64_t size, struct smalti_error *error)
{
	const cJSON *arrays = cJSON_GetObjectItemCaseSensitive(index->document, "arrays");
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_has(&index->schema, array) &&
		    read_place(index, arrays, array, size, error) < 0)
			return -1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_has(&index->schema, array) && check_place(index, array, error) < 0)
			return -1;
	return 0;
}

static int read_captions(struct smalti_shard_schema *schema, const cJSON *object, struct smalti_error *error)
{
	const cJSON *captions = cJSON_GetObjectItemCaseSensitive(object, "captions");
	if (!cJSON_IsArray(captions))
		return smalti_fail(error, SMALTI_ECORRUPT, "its index has no list of captions");
	if (cJSON_GetArraySize(captions) == 0)
		return 0;
	return smalti_json_strings(object, "captions", SMALTI_JSON_REQUIRED, SMALTI_FEATURES_CAPTIONS_MAX,
				   schema->captions, &schema->caption_count, error);
}

static int read_schema(struct smalti_shard_schema *schema, const cJSON *object, struct smalti_error *error)
{
	const enum smalti_json_need need = SMALTI_JSON_REQUIRED;
	int dtype = 0;
	if (read_captions(schema, object, error) ||
	    smalti_json_choice(object, "dtype", need, dtype_names, &dtype, error) ||
	    smalti_json_int(object, "text_width", need, 0, LARGEST, &schema->text_width, error) ||
	    smalti_json_int(object, "max_tokens", need, 0, LARGEST, &schema->max_tokens, error) ||
	    smalti_json_int(object, "latent_channels", need, 0, LARGEST, &schema->latent_channels, error) ||
	    smalti_json_int(object, "image_size", need, 0, LARGEST, &schema->image_size, error) ||
	    smalti_json_double(object, "scaling_factor", need, -1e300, 1e300, &schema->scaling_factor,
			       error) ||
	    smalti_json_bool(object, "compress", need, &schema->compress, error) ||
	    smalti_json_string(object, "provenance", need, &schema->provenance, error))
		return -1;
	schema->dtype = (enum smalti_dtype)dtype;
	return smalti_shard_check_schema(schema, error);
}

static int read_timing(struct smalti_shard_timing *timing, const cJSON *object, struct smalti_error *error)
{
	const enum smalti_json_need need = SMALTI_JSON_REQUIRED;
	return smalti_json_double(object, "began", need, -1e300, 1e300, &timing->began, error) ||
		       smalti_json_double(object, "ended", need, -1e300, 1e300, &timing->ended, error) ||
		       smalti_json_double(object, "text_seconds", need, -1e300, 1e300, &timing->text_seconds,
					  error) ||
		       smalti_json_double(object, "picture_seconds", need, -1e300, 1e300,
					  &timing->image_seconds, error) ||
		       smalti_json_int(object, "tokens", need, 0, LARGEST, &timing->tokens, error) ||
		       smalti_json_int(object, "pixels", need, 0, LARGEST, &timing->pixels, error)
		   ? -1
		   : 0;
}

int smalti_shard_index_parse(struct smalti_shard_index *index, const char *text, size_t length, int64_t size,
			     struct smalti_error *error)
{
	*index = (struct smalti_shard_index){.first = 0};
	index->document = smalti_json_parse(text, length, error);
	int64_t version;
	if (!index->document ||
	    smalti_json_int(index->document, "version", SMALTI_JSON_REQUIRED, 1, LARGEST, &version, error))
		return -1;
	if (version != SMALTI_SHARD_VERSION)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "a shard of version %d was expected, found %" PRId64
				   ": made by a newer smalti",
				   SMALTI_SHARD_VERSION, version);
	if (smalti_json_int(index->document, "first", SMALTI_JSON_REQUIRED, 0, LARGEST / 2, &index->first,
			    error) ||
	    smalti_json_int(index->document, "rows", SMALTI_JSON_REQUIRED, 0, LARGEST / 2, &index->rows,
			    error) ||
	    read_schema(&index->schema, index->document, error) ||
	    read_timing(&index->timing, cJSON_GetObjectItemCaseSensitive(index->document, "timing"), error))
		return -1;
	return read_arrays(index, size, error);
}
