/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_FAILED_H
#define SMALTI_STORE_FAILED_H

#include "shard/shard.h"
#include "store/journal.h"

/* DIRECTORY/failed.jsonl: a line {"index", "key", "stage", "reason"} per reason of each item that lacks
 * features. All of it is in the shards, too: where it does not fit the journal, it is made anew. Under the
 * directory's lock. */

/* What a shard adds, for free(); its items that failed, its reasons. */
struct smalti_failed {
	char *lines;
	int64_t failures, reasons;
};

int smalti_failed_of(struct smalti_shard *shard, struct smalti_failed *failed, struct smalti_error *error);

/* Takes the place of the lines that there were of the shard's items, if it was made anew. */
int smalti_failed_add(const char *directory, const struct smalti_journal_entry *entry, const char *lines,
		      struct smalti_error *error);
/* Whether it has as many lines as the journal counts. */
bool smalti_failed_fits(const char *directory, const struct smalti_journal *journal);
/* What it should hold, from the shards, in the order of their items; for free(). */
char *smalti_failed_print(const char *directory, const struct smalti_journal *journal,
			  struct smalti_error *error);
int smalti_failed_rebuild(const char *directory, const struct smalti_journal *journal,
			  struct smalti_error *error);

#endif
