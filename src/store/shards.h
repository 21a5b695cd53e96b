/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "share/range.h"

/* The name of a shard's file, which says what is in it: items first … end − 1, made anew `remake` times
 * (shard-000000000000-000000001000.h5, shard-000000000000-000000001000-r1.h5). */
struct smalti_shard_id {
	int64_t first, end;
	int remake;
};

enum { SMALTI_SHARD_NAME = 80 };

void smalti_shard_name(const struct smalti_shard_id *id, char name[SMALTI_SHARD_NAME]);
/* Tells whether a file of that name is a shard, and which. */
bool smalti_shard_name_parse(const char *name, struct smalti_shard_id *id);

/* Returns DIRECTORY/.shard-FIRST-END.h5.TOKEN.part, which a claim's holder writes; free with free(). NULL
 * with an error. */
char *smalti_part_path(const char *directory, int64_t first, int64_t end, const char *token,
		       struct smalti_error *error);

/* The committed shards of a directory: the files with such names. A shard gets its name when it is whole and
 * on the disk, so that there is no other record of them. Of several with equal items the one that was made
 * last counts. */

struct smalti_shard_entry {
	struct smalti_shard_id id;
	bool overlaps; /* with the shard before it: one of them should not be there */
	bool tried;    /* was claimed to be made anew, or made since these shards were first read */
	bool broken;   /* as smalti verify has found */
	/* What its file says, once it was described. @{ */
	bool described;
	int64_t failures, reasons; /* items without all their features; why, at least one reason each */
	int64_t bytes;
	uint64_t seal; /* of all that is in it, see smalti_shard_seal() */
		       /* @} */
};

/* Zeroed, nothing was read of it. */
struct smalti_shards {
	struct smalti_shard_entry *entries; /* by `first` */
	int64_t count;
	bool read;
};

/* Reads the names; what is known of files that are still there stays. Needs no lock. */
int smalti_shards_read(struct smalti_shards *shards, const char *directory, struct smalti_error *error);
/* Fails if shards overlap. */
int smalti_shards_check(const struct smalti_shards *shards, const char *directory,
			struct smalti_error *error);
/* Reads what the files of all shards say that are not described and can be read. */
int smalti_shards_describe(struct smalti_shards *shards, const char *directory, struct smalti_error *error);
void smalti_shards_free(struct smalti_shards *shards);

/* Tells whether the items 0 … items − 1 are committed. */
bool smalti_shards_cover(const struct smalti_shards *shards, int64_t items);
/* Finds what is committed within [first, end), as indices of entries: *from … the result − 1. */
int64_t smalti_shards_within(const struct smalti_shards *shards, int64_t first, int64_t end, int64_t *from);
/* What is committed within [first, end). A shard that reaches beyond it counts with its items in it, but with
 * all its failures and bytes. */
struct smalti_store_totals {
	int64_t items, failures, shards, bytes;
};
struct smalti_store_totals smalti_shards_totals(const struct smalti_shards *shards, int64_t first,
						int64_t end);
/* Returns the entry of that very name; NULL: there is none. */
struct smalti_shard_entry *smalti_shards_find(const struct smalti_shards *shards,
					      const struct smalti_shard_id *id);

/* Returns DIRECTORY/shard-….h5; NULL with an error. Free with free(). */
char *smalti_shard_path(const char *directory, const struct smalti_shard_id *id, struct smalti_error *error);
