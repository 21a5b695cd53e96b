/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/index.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* "smalti shard 1 HASH-OF-THE-REST HASH-OF-THE-TEXT LENGTH-OF-THE-TEXT\n" */
#define TRAILER "smalti shard 1 %016" PRIx64 " %016" PRIx64 " %012" PRId64 "\n"
enum { TRAILER_BYTES = 15 + 16 + 1 + 16 + 1 + 12 + 1, LENGTH_AT = 15 + 16 + 1 + 16 + 1, LENGTH_DIGITS = 12 };

static const char hdf5_begins[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};

bool smalti_shard_is_compressed(const struct smalti_shard_index *index, int array)
{
	return index->schema.compress && smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE;
}

int64_t smalti_shard_piece_checksum(const char *file, const struct smalti_shard_piece *piece)
{
	const uint64_t mask = (UINT64_C(1) << 52) - 1;
	return (int64_t)(XXH3_64bits(file + piece->offset, (size_t)piece->bytes) & mask);
}

struct span {
	int64_t begin, end;
};

static int by_begin(const void *left, const void *right)
{
	const struct span *a = left, *b = right;
	return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Adds the bytes that rows' checksums or those of compressed pieces cover. */
static int64_t add_spans(const struct smalti_shard_index *index, int array, struct span *spans)
{
	const struct smalti_shard_place *place = &index->places[array];
	for (int64_t i = 0; i < place->piece_count; i++) {
		const int64_t left = place->count - i * place->chunk;
		const int64_t used = (left < place->chunk ? left : place->chunk) * place->entry_bytes;
		const struct smalti_shard_piece *piece = &place->pieces[i];
		const bool compressed = smalti_shard_is_compressed(index, array);
		spans[i] = (struct span){piece->offset, piece->offset + (compressed ? piece->bytes : used)};
	}
	return place->piece_count;
}

/* XXH3 over all of the file but these spans. */
static int hash_rest(const char *file, int64_t size, struct span *spans, int64_t count, uint64_t *hash,
		     struct smalti_error *error)
{
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_64bits_reset(state);
	qsort(spans, (size_t)count, sizeof(*spans), by_begin);
	int64_t at = 0;
	for (int64_t i = 0; i <= count; i++) {
		const int64_t begin = i < count ? spans[i].begin : size;
		if (begin > at)
			XXH3_64bits_update(state, file + at, (size_t)(begin - at));
		if (i < count && spans[i].end > at)
			at = spans[i].end;
	}
	*hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return 0;
}

static int rest_checksum(const struct smalti_shard_index *index, const char *file, int64_t size,
			 uint64_t *hash, struct smalti_error *error)
{
	int64_t count = 0, filled = 0;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE)
			count += index->places[array].piece_count;
	struct span *spans = smalti_calloc(count + 1, sizeof(*spans), error);
	if (!spans)
		return -1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		if (smalti_shard_array_kind(array)->unit == SMALTI_UNIT_VALUE)
			filled += add_spans(index, array, spans + filled);
	const int status = hash_rest(file, size, spans, filled, hash, error);
	free(spans);
	return status;
}

char *smalti_shard_seal_text(const struct smalti_shard_index *index, const char *text, const char *file,
			     int64_t size, int64_t *bytes, struct smalti_error *error)
{
	uint64_t rest;
	if (rest_checksum(index, file, size, &rest, error) < 0)
		return NULL;
	const size_t length = strlen(text);
	char *sealed = smalti_format(error, "%s" TRAILER, text, rest, (uint64_t)XXH3_64bits(text, length),
				     (int64_t)length);
	if (sealed)
		*bytes = (int64_t)strlen(sealed);
	return sealed;
}

/* The text in front of the last line; what that line should be is compared as a whole. */
static int find_text(const char *file, int64_t size, const char **text, int64_t *length,
		     struct smalti_error *error)
{
	if (size < (int64_t)sizeof(hdf5_begins) || memcmp(file, hdf5_begins, sizeof(hdf5_begins)) != 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no shard of features: not an HDF5 file");
	const char *line = file + size - TRAILER_BYTES;
	char digits[LENGTH_DIGITS + 1] = "";
	if (size > TRAILER_BYTES)
		memcpy(digits, line + LENGTH_AT, LENGTH_DIGITS);
	*length = strtoll(digits, NULL, 10);
	if (size <= TRAILER_BYTES || memcmp(line, TRAILER, 15) != 0 || *length <= 0 ||
	    *length > size - TRAILER_BYTES)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "its last line is not that of a shard: cut short, changed or no shard");
	*text = line - *length;
	return 0;
}

int smalti_shard_index_read(struct smalti_shard_index *index, const char *file, int64_t size, bool unchecked,
			    struct smalti_error *error)
{
	*index = (struct smalti_shard_index){.first = 0};
	const char *text = NULL;
	int64_t length = 0;
	uint64_t rest = 0;
	if (find_text(file, size, &text, &length, error) < 0)
		return -1;
	const uint64_t hash = XXH3_64bits(text, (size_t)length);
	char expected[TRAILER_BYTES + 1], mark[16 + 2];
	snprintf(mark, sizeof(mark), "%016" PRIx64 " ", hash);
	if (memcmp(text + length + LENGTH_AT - 17, mark, 17) != 0)
		return smalti_fail(error, SMALTI_ECORRUPT, "the checksum of its index is another: damaged");
	if (smalti_shard_index_parse(index, text, (size_t)length, text - file, error) < 0)
		return -1;
	index->seal = XXH3_64bits(text + length, TRAILER_BYTES);
	if (unchecked)
		return 0;
	if (rest_checksum(index, file, text - file, &rest, error) < 0)
		return -1;
	snprintf(expected, sizeof(expected), TRAILER, rest, hash, length);
	if (memcmp(text + length, expected, TRAILER_BYTES) != 0)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "the checksum of what is not values is another: all its rows (%" PRId64
				   " to %" PRId64 ") are lost",
				   index->first, index->first + index->rows - 1);
	return 0;
}

void smalti_shard_index_free(struct smalti_shard_index *index)
{
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++)
		free(index->places[array].pieces);
	cJSON_Delete(index->document);
	*index = (struct smalti_shard_index){.first = 0};
}
