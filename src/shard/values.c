/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/index.h"

static int inflate_piece(struct smalti_shard_values *values, const struct smalti_shard_piece *piece,
			 const char *file, int64_t bytes, int64_t size, struct smalti_error *error)
{
	const struct smalti_deflated deflated = {file + piece->offset, piece->bytes,
						 piece->bytes == bytes ? SMALTI_WITHOUT_DEFLATE : 0};
	if (smalti_shard_piece_checksum(file, piece) != piece->checksum)
		return smalti_fail(error, SMALTI_ECORRUPT, "the checksum of a compressed piece is another");
	return smalti_inflate(&values->inflater, &deflated, values->chunk, bytes, size, error);
}

/* Loads this piece of the array into values->chunk. */
static int load_piece(struct smalti_shard_values *values, const struct smalti_shard_index *index, int array,
		      const char *file, int64_t piece, struct smalti_error *error)
{
	if (values->piece == piece + 1)
		return 0;
	const struct smalti_shard_place *place = &index->places[array];
	const int64_t bytes = place->chunk * place->entry_bytes;
	if (!values->chunk)
		values->chunk = smalti_aligned_alloc(bytes, 1, error);
	values->piece = 0;
	if (!values->chunk || inflate_piece(values, &place->pieces[piece], file, bytes,
					    smalti_dtype_bytes(index->schema.dtype), error) < 0)
		return -1;
	values->piece = piece + 1;
	return 0;
}

/* Returns where a piece's bytes are in memory. */
static const char *piece_bytes(struct smalti_shard_values *values, const struct smalti_shard_index *index,
			       int array, const char *file, int64_t piece, struct smalti_error *error)
{
	if (!smalti_shard_is_compressed(index, array))
		return file + index->places[array].pieces[piece].offset;
	return load_piece(values, index, array, file, piece, error) == 0 ? values->chunk : NULL;
}

static const void *bring_together(struct smalti_shard_values *values, const struct smalti_shard_index *index,
				  int array, const char *file, int64_t start, int64_t count,
				  struct smalti_error *error)
{
	const struct smalti_shard_place *place = &index->places[array];
	if (smalti_room_make(&values->run, count * place->entry_bytes, error) < 0)
		return NULL;
	unsigned char *to = values->run.bytes;
	while (count > 0) {
		const int64_t at = start % place->chunk, now = smalti_min(place->chunk - at, count);
		const char *from = piece_bytes(values, index, array, file, start / place->chunk, error);
		if (!from)
			return NULL;
		memcpy(to, from + at * place->entry_bytes, (size_t)(now * place->entry_bytes));
		to += now * place->entry_bytes;
		start += now;
		count -= now;
	}
	return values->run.bytes;
}

const void *smalti_shard_values_get(struct smalti_shard_values *values,
				    const struct smalti_shard_index *index, int array, const char *file,
				    int64_t start, int64_t count, struct smalti_error *error)
{
	const struct smalti_shard_place *place = &index->places[array];
	const int64_t piece = start / place->chunk, at = start % place->chunk;
	if (smalti_shard_is_compressed(index, array) && at + count <= place->chunk) {
		const char *from = piece_bytes(values, index, array, file, piece, error);
		return from ? from + at * place->entry_bytes : NULL;
	}
	return bring_together(values, index, array, file, start, count, error);
}

void smalti_shard_values_free(struct smalti_shard_values *values)
{
	free(values->run.bytes);
	free(values->chunk);
	smalti_deflater_free(&values->inflater);
	*values = (struct smalti_shard_values){.piece = 0};
}
