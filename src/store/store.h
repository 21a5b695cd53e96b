/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "shard/shard.h"
#include "share/identity.h"
#include "share/take.h"
#include "store/shards.h"

/* A directory of features for the processes that fill it: any number, on any machines that share it.
 *
 *   extract.json         what the features are of and how they are made, fixed by the first process
 *   shard-FIRST-END.h5   items FIRST … END − 1 (12 digits each), committed: there is no other record of it;
 *                        -rN before .h5: made anew for the Nth time, in the place of all before
 *   claims/FIRST-END     ranges that a process is at work on, kept alive by its heartbeat
 *   failed.jsonl         items without all their features: from the shards
 *   runs/                what each process measured, for `smalti report`
 *   features.h5          all shards as one data set; manifest.json: all shards and totals (made at the end)
 *
 * Whatever changes the shards or the claims holds a lock on the directory. A commit is: close, fsync, verify,
 * rename, fsync of the directory. */
struct smalti_store;

/* Several threads may use a store, but because of HDF5 only one at a time may open, begin, commit, abandon or
 * complete. */
struct smalti_store_options {
	/* What has to be the same for a resume, a flat or nested object. A difference is refused and named by
	 * its dotted key, with both values and the remedy. */
	const cJSON *identity;
	int64_t lease_seconds; /* a claim not renewed for so long is anyone's; one whose process has died on
				  this machine is at once. 0: 300 */
	struct smalti_identity_rules rules;
	/* A directory whose identity has `before` under the key `grows` is made to have there what `identity`
	 * has, and is incomplete until what was added is done. NULL: none is. */
	const char *grows;
	const cJSON *before;
	/* Called while another holds the lock, as in share/lock.h, on the waiting thread. May be NULL. */
	bool (*waiting)(void *user, const char *holder, double seconds);
	void *user;
};

/* Makes the directory or resumes it; unfinished files of dead processes are removed. */
struct smalti_store *smalti_store_open(const char *directory, const struct smalti_store_options *options,
				       struct smalti_error *error);
/* Gives the claims back, if it can take the lock, and stops the heartbeat. Writers have been committed or
 * abandoned before. NULL is fine. */
void smalti_store_close(struct smalti_store *store);

/* Claims the first piece of `within` that is neither committed nor claimed. It lies between two multiples of
 * `items`. With `old` it claims all of a shard with failures, to be made anew, that was committed before the
 * store was opened and that it has not claimed before; its file goes to *old, for free(). */
enum smalti_claim_status smalti_store_claim(struct smalti_store *store, const struct smalti_range *within,
					    int64_t items, struct smalti_range *range, char **old,
					    char holder[256], struct smalti_error *error);

/* Creates the file to write what was claimed into (a .part). One at a time per range, several ranges at a
 * time. */
struct smalti_shard_writer *smalti_store_begin(struct smalti_store *store, const struct smalti_range *range,
					       const struct smalti_shard_schema *schema,
					       struct smalti_error *error);
/* Commits the range, or its first part if fewer rows were appended, with its failures, and gives the claim
 * back. After -1 nothing has been committed, and the claim is given back, too. A claim that was lost
 * meanwhile (the process was stopped for longer than its lease) is no error: what was made is dropped, *lost
 * is true. This is also so when a shard to be made anew has fewer rows than the old one. */
int smalti_store_commit(struct smalti_store *store, const struct smalti_range *range,
			struct smalti_shard_writer *writer, const struct smalti_shard_timing *timing,
			bool *lost, struct smalti_error *error);
/* Drops the file (writer may be NULL) and gives the claim back. */
void smalti_store_abandon(struct smalti_store *store, const struct smalti_range *range,
			  struct smalti_shard_writer *writer);

/* Sums what was committed within the range, by any process, as last read by a claim or commit. */
void smalti_store_totals(struct smalti_store *store, const struct smalti_range *within,
			 struct smalti_store_totals *totals);

/* Makes features.h5, manifest.json and failed.jsonl when 0 … items − 1 are committed. Before that, and when
 * they are there, it does nothing. */
int smalti_store_complete(struct smalti_store *store, int64_t items, struct smalti_error *error);
