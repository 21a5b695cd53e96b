/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SHARD_INDEX_H
#define SMALTI_SHARD_INDEX_H

#include "base/json.h"
#include "shard/layout.h"

/* What a shard's file ends with, behind all that is HDF5's: a JSON text that says where each array lies, and
 * a line with its checksum and that of all bytes before it that no other checksum covers. Smalti reads shards
 * by it alone, HDF5's own code never sees a file that may be damaged. docs/features.md describes it. */

/* Bytes of the file: a chunk of an array, or all of it. */
struct smalti_shard_piece {
	int64_t offset, bytes;
	int64_t mask;     /* HDF5's filter mask: 2 where DEFLATE was left out */
	int64_t checksum; /* of compressed bytes: the last 52 bits of their XXH3; else 0 */
};

struct smalti_shard_place {
	int64_t count, entry_bytes;
	int64_t chunk; /* entries in a piece; the last piece has room for as many */
	int64_t piece_count;
	struct smalti_shard_piece *pieces;
};

struct smalti_shard_index {
	struct smalti_shard_schema schema;
	int64_t first, rows;
	struct smalti_shard_timing timing;
	struct smalti_shard_place places[SMALTI_SHARD_ARRAYS];
	uint64_t seal;   /* of what was read: the checksum of the line with the checksums */
	cJSON *document; /* what was read: the schema's strings are its own */
};

/* Whether this array's values went through HDF5's filters. */
bool smalti_shard_is_compressed(const struct smalti_shard_index *index, int array);

/* Reads and checks it: all pieces lie in the file, all counts agree. SMALTI_EFORMAT: no shard;
 * SMALTI_ECORRUPT: one that is damaged or cut short. `unchecked` looks away from all that is not the index.
 * Free it in any case. */
int smalti_shard_index_read(struct smalti_shard_index *index, const char *file, int64_t size, bool unchecked,
			    struct smalti_error *error);
void smalti_shard_index_free(struct smalti_shard_index *index);

/* The bytes to put behind a file (for free()), whose length goes to *bytes. Fills in the checksums of
 * compressed pieces. */
char *smalti_shard_index_seal(struct smalti_shard_index *index, const char *file, int64_t size,
			      int64_t *bytes, struct smalti_error *error);
/* The same for an index that is text already. */
char *smalti_shard_seal_text(const struct smalti_shard_index *index, const char *text, const char *file,
			     int64_t size, int64_t *bytes, struct smalti_error *error);
/* An index from its text, whose file has `size` bytes in front of it. */
int smalti_shard_index_parse(struct smalti_shard_index *index, const char *text, size_t length, int64_t size,
			     struct smalti_error *error);

/* That of a compressed piece. */
int64_t smalti_shard_piece_checksum(const char *file, const struct smalti_shard_piece *piece);

/* What the reader has open, for who joins shards. */
const struct smalti_shard_index *smalti_shard_index(const struct smalti_shard *shard);
/* All entries of an array that is not of values, at any address; NULL: there are none. */
const void *smalti_shard_entries(const struct smalti_shard *shard, int array);

#endif
