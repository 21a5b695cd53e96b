/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SHARD_VALUES_H
#define SMALTI_SHARD_VALUES_H

#include "shard/deflate.h"
#include "shard/index.h"

/* Runs of entries of an array, out of a mapped file: where they lie in one piece as they are, that is all;
 * else they are brought together in memory. Initialise with zeros. */
struct smalti_shard_values {
	char *run; /* what was brought together */
	int64_t run_capacity;
	char *chunk; /* the inflated piece `piece − 1`, if that is not −1 */
	int64_t piece;
	struct smalti_inflater *inflater; /* NULL: was not needed yet */
};

/* `count` > 0 entries from `start` on, which are in the array; NULL: damaged, or no memory. Until the next
 * call. */
const void *smalti_shard_values_get(struct smalti_shard_values *values,
				    const struct smalti_shard_index *index, int array, const char *file,
				    int64_t start, int64_t count, struct smalti_error *error);
void smalti_shard_values_free(struct smalti_shard_values *values);

#endif
