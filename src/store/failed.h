/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_FAILED_H
#define SMALTI_STORE_FAILED_H

#include "shard/shard.h"
#include "store/shards.h"

/* DIRECTORY/failed.jsonl: a line {"index", "key", "stage", "reason"} per reason of each item that lacks
 * features. All of it is in the shards, too: where it does not fit them, it is made anew. Under the
 * directory's lock. */

/* Adds the lines of a shard of other items. */
int smalti_failed_append(const char *directory, struct smalti_shard *shard, struct smalti_error *error);
/* Whether it has as many lines as the shards have reasons. */
bool smalti_failed_fits(const char *directory, const struct smalti_shards *shards);
/* What it should hold, from the shards, in the order of their items; for free(). */
char *smalti_failed_print(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error);
int smalti_failed_rebuild(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error);

#endif
