/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_DIRECTORY_H
#define SMALTI_STORE_DIRECTORY_H

#include "store/claims.h"
#include "store/journal.h"
#include "store/lock.h"
#include "store/store.h"

#include <pthread.h>

/* What a store is made of: for the files of it alone. */

/* A range that was claimed. */
struct smalti_work {
	struct smalti_range range;
	int replaces; /* the remake that it is to replace; -1: none */
	char *part;   /* the file that it is written to */
	bool open;    /* until it is given back */
};

struct smalti_store {
	char *directory;
	int64_t lease;
	struct smalti_heartbeat *heartbeat;
	struct smalti_lock *lock; /* for whatever changes the journal and the claims */
	struct smalti_claims *claims;
	int64_t first_line; /* lines of the journal that were there at the beginning */

	pthread_mutex_t mutex; /* for what follows; taken while the lock is held, never the other way round */
	struct smalti_journal journal;
	struct smalti_work *work; /* all that was ever claimed */
	int64_t work_count, work_capacity;
};

/* With the lock held: reads what others have added to the journal. */
int smalti_store_read(struct smalti_store *store, struct smalti_error *error);

/* The empty journal, the directories in it, extract.json. */
int smalti_directory_make(const char *directory, const cJSON *identity, struct smalti_error *error);
/* The directories alone, which are nothing to a copy that leaves empty ones out. */
int smalti_directory_prepare(const char *directory, struct smalti_error *error);
/* extract.json alone. */
int smalti_directory_describe(const char *directory, const cJSON *identity, struct smalti_error *error);
/* Whether it is a directory of features: 1; 0 if it is fit to become one; -1 if it is neither. */
int smalti_directory_look(const char *directory, struct smalti_error *error);
/* What extract.json says of what is in it; free with cJSON_Delete(). */
cJSON *smalti_directory_identity(const char *directory, struct smalti_error *error);
/* Tells of files that no process is at work on and no line of the journal names. */
int smalti_directory_strays(const char *directory, const struct smalti_journal *journal,
			    const struct smalti_claim *claims, int64_t count,
			    void (*tell)(void *user, const char *name), void *user,
			    struct smalti_error *error);
/* Removes them. */
int smalti_directory_clean(const char *directory, const struct smalti_journal *journal,
			   const struct smalti_claim *claims, int64_t count, struct smalti_error *error);

/* Whether manifest.json is of what the journal holds. */
bool smalti_manifest_fits(const char *directory, const struct smalti_journal *journal);
/* Removes it and features.h5: they say what is no longer so. */
void smalti_manifest_remove(const char *directory);
/* failed.jsonl, features.h5 and manifest.json, of what the journal holds. */
int smalti_directory_complete(const char *directory, const struct smalti_journal *journal,
			      struct smalti_error *error);

#endif
