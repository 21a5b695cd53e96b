/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/deflate.h"
#include "shard/layout.h"

/* What a shard's file ends with, behind all that is HDF5's: an index that says where each array lies, and a
 * line with its checksum and that of all bytes before it that no other checksum covers. Smalti reads shards
 * by it alone, HDF5's own code never sees a file that may be damaged. docs/features.md describes it. */

/* The index's head; numbers of 8 bytes, the least one first. */
struct smalti_shard_head {
	int64_t first, rows, failures;
	int64_t dtype, captions, text_width, max_tokens, latent_channels, image_size, compress;
	double scaling_factor;
	int64_t image_values;
	int64_t tokens[SMALTI_FEATURES_CAPTIONS_MAX];
	int64_t text_bytes[SMALTI_SHARD_TEXTS]; /* of an entry */
};

/* Then texts, a NUL behind each: the captions and the provenance; NULs up to a multiple of 8 bytes. Then, for
 * each array that there is, each of its pieces: the bytes of a chunk, or all of them. */
struct smalti_shard_piece {
	int64_t offset,
	    bytes;         /* compressed ones are as long as they were where only the shuffle filter helped */
	uint64_t checksum; /* of compressed bytes: their XXH3; else 0 */
};

/* What the head and the pieces say of an array. */
struct smalti_shard_place {
	int64_t count, entry_bytes;
	int64_t chunk; /* entries in a piece; the last piece has room for as many */
	int64_t piece_count;
	struct smalti_shard_piece *pieces;
};

struct smalti_shard_index {
	struct smalti_shard_head head;
	struct smalti_shard_schema schema;
	struct smalti_shard_place places[SMALTI_SHARD_ARRAYS];
	char *bytes; /* all of it, with the pieces; of an index that was read also the schema's strings */
	int64_t length;
	uint64_t seal; /* of one that was read: the checksum of the line with the checksums */
};

/* Tells whether this array's values went through HDF5's filters. */
bool smalti_shard_is_compressed(const struct smalti_shard_index *index, int array);

/* Makes an index for what the head and the schema say; its pieces are to be filled in. Free it in any
 * case. */
int smalti_shard_index_make(struct smalti_shard_index *index, const struct smalti_shard_head *head,
			    const struct smalti_shard_schema *schema, struct smalti_error *error);
/* Reads and checks it: all pieces lie in the file, all counts agree. SMALTI_EFORMAT: no shard;
 * SMALTI_ECORRUPT: one that is damaged or cut short. With `unchecked` only the index is checked. Free it in
 * any case. */
int smalti_shard_index_read(struct smalti_shard_index *index, const char *file, int64_t size, bool unchecked,
			    struct smalti_error *error);
/* Parses an index of so many bytes, whose file has `size` bytes in front of it. Free it in any case. */
int smalti_shard_index_parse(struct smalti_shard_index *index, const void *bytes, int64_t length,
			     int64_t size, struct smalti_error *error);
void smalti_shard_index_free(struct smalti_shard_index *index);

enum { SMALTI_SHARD_TRAILER = 62 };
/* Writes the line to put behind a file and its index, with a NUL. Fills in the checksums of compressed
 * pieces. */
int smalti_shard_index_seal(struct smalti_shard_index *index, const char *file, int64_t size,
			    char line[SMALTI_SHARD_TRAILER + 1], struct smalti_error *error);

/* Returns the checksum of a compressed piece. */
uint64_t smalti_shard_piece_checksum(const char *file, const struct smalti_shard_piece *piece);

/* Returns the index that the reader has open, to join shards. */
const struct smalti_shard_index *smalti_shard_index(const struct smalti_shard *shard);
/* Returns all entries of an array that is not of values, at any address; NULL: there are none. */
const void *smalti_shard_entries(const struct smalti_shard *shard, int array);

/* Runs of entries of an array, out of a mapped file into memory: what was checked there stays as it is when
 * the file does not. Initialise with zeros. */
struct smalti_shard_values {
	struct smalti_room run; /* what was brought together */
	char *chunk;            /* the inflated piece `piece − 1`, if that is not −1 */
	int64_t piece;
	struct smalti_deflater inflater;
};

/* Returns `count` > 0 entries from `start` on, which are in the array, until the next call; NULL: damaged, or
 * no memory. */
const void *smalti_shard_values_get(struct smalti_shard_values *values,
				    const struct smalti_shard_index *index, int array, const char *file,
				    int64_t start, int64_t count, struct smalti_error *error);
void smalti_shard_values_free(struct smalti_shard_values *values);
