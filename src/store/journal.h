/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_JOURNAL_H
#define SMALTI_STORE_JOURNAL_H

#include "store/layout.h"

#include "base/error.h"

#include <sys/types.h>

/* The file `journal` of a directory: what is committed. A line is `XXH3 JSON`, the XXH3 (64 bits) of the
 * JSON's bytes in 16 hexadecimal digits. A commit:
 *   {"file": "shard-….h5", "rows": N, "failures": N, "reasons": N, "bytes": N, "xxh3": "…", "time": T}
 * with "replaces": "shard-….h5" for a shard made anew; its taking back, by `smalti verify --repair`:
 *   {"drop": "shard-….h5", "reason": "…", "time": T}
 * The last line may be torn, by a crash: it was never there. Any other that is damaged is SMALTI_ECORRUPT. */

/* A committed shard. */
struct smalti_journal_entry {
	struct smalti_shard_id id;
	int64_t failures, reasons; /* items without all their features; why, at least one reason each */
	int64_t bytes;             /* of the file */
	uint64_t digest;           /* of the whole file */
	double time;               /* of the commit: seconds since 1970 */
	int64_t line;              /* where that stands, from 1 */
	int replaces;              /* the remake that this one stands for; -1: it is the first */
	bool drop;                 /* from here on there is none */
};

/* Zeroed, it is one that nothing was read of. */
struct smalti_journal {
	struct smalti_journal_entry *entries; /* what holds now, by `first`; no two overlap */
	int64_t count, capacity;
	int64_t lines, bytes; /* read so far: whole lines */
	int64_t torn;         /* bytes behind them, of a line that was never finished */
	dev_t device;         /* of the file that they were read of */
	ino_t inode;
};

/* Is told of each damaged line, which is then passed over, and of shards that overlap. */
struct smalti_journal_watch {
	void (*damaged)(void *user, int64_t line, const char *what);
	void *user;
};

/* Passes damage over without a word. */
extern const struct smalti_journal_watch smalti_journal_ignore;

/* Reads what has been added since. `watch` NULL: damage is an error. Needs no lock. */
int smalti_journal_read(struct smalti_journal *journal, const char *directory,
			const struct smalti_journal_watch *on_progress, struct smalti_error *error);
void smalti_journal_free(struct smalti_journal *journal);

/* Adds a line, which is on the disk afterwards; or it is not in the file. What was read has to be all there
 * is: under the directory's lock. `reason` is for a drop. */
int smalti_journal_append(struct smalti_journal *journal, const char *directory,
			  const struct smalti_journal_entry *entry, const char *reason,
			  struct smalti_error *error);

/* Writes a journal of what is committed alone, in the place of the one that is there. */
int smalti_journal_rewrite(struct smalti_journal *journal, const char *directory, struct smalti_error *error);

/* Whether the items 0 … items − 1 are committed. */
bool smalti_journal_covers(const struct smalti_journal *journal, int64_t items);

/* What is committed within [first, end), as indices of entries: *from … the result − 1. */
int64_t smalti_journal_within(const struct smalti_journal *journal, int64_t first, int64_t end,
			      int64_t *from);

/* Whether it names this very file. */
bool smalti_journal_names(const struct smalti_journal *journal, const struct smalti_journal_entry *entry);

/* DIRECTORY/shard-….h5; NULL with an error. Free with free(). */
char *smalti_journal_path(const char *directory, const struct smalti_shard_id *id,
			  struct smalti_error *error);

#endif
