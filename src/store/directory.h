/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/shard.h"
#include "share/member.h"
#include "store/shards.h"
#include "store/store.h"

/* A store's members: for its own files alone. */

struct smalti_store {
	struct smalti_member member; /* its lock is for whatever changes the shards, too */
	pthread_mutex_t mutex; /* for what follows; taken while the lock is held, never the other way round */
	struct smalti_shards shards;
};

/* Reads what others have committed. The lock is held. */
int smalti_store_read(struct smalti_store *store, struct smalti_error *error);

/* Makes the directories in it, which are missing in a copy that leaves empty ones out. */
int smalti_directory_prepare(const char *directory, struct smalti_error *error);
/* Removes the unfinished shard of a claim. */
void smalti_part_remove(const char *directory, const struct smalti_claim *claim);
/* Writes extract.json, which makes it a directory of features. */
int smalti_directory_describe(const char *directory, const cJSON *identity, struct smalti_error *error);
/* Returns 1 for a directory of features, 0 if there is none but may be, -1 if something else is there. */
int smalti_directory_look(const char *directory, struct smalti_error *error);
/* Returns what extract.json says of the features; free with cJSON_Delete(). */
cJSON *smalti_directory_identity(const char *directory, struct smalti_error *error);
/* Files that no process works on and that are no committed shards: they are reported, or, without `strays`,
 * removed. */
struct smalti_strays {
	void (*report)(void *user, const char *name);
	void *user;
};
int smalti_directory_clean(const char *directory, const struct smalti_shards *shards,
			   struct smalti_claims *claims, int64_t now, const struct smalti_strays *strays,
			   struct smalti_error *error);

/* Tells whether manifest.json is of these shards. */
bool smalti_manifest_fits(const char *directory, const struct smalti_shards *shards);
/* Removes manifest.json and features.h5, which are no longer true. */
void smalti_manifest_remove(const char *directory);
/* Makes failed.jsonl, features.h5 and manifest.json of these shards. */
int smalti_directory_complete(const char *directory, const struct smalti_shards *shards,
			      struct smalti_error *error);

/* Makes DIRECTORY/features.h5: all committed shards as one, for programs that read HDF5. Its arrays are
 * virtual, so that values stay where they are; only where rows begin is written anew. The file appears
 * complete or not at all. The directory's lock is held. */
int smalti_join(const char *directory, const struct smalti_shards *shards, struct smalti_error *error);

/* DIRECTORY/failed.jsonl: a line {"index", "key", "stage", "reason"} per reason of each item that lacks
 * features. All of it is in the shards, too: where it does not fit them, it is made anew. Under the
 * directory's lock. */

/* Adds the lines of a shard of other items. */
int smalti_failed_append(const char *directory, struct smalti_shard *shard, struct smalti_error *error);
/* Tells whether it has as many lines as the shards have reasons. */
bool smalti_failed_fits(const char *directory, const struct smalti_shards *shards);
/* Returns what it should hold, from the shards, in the order of their items; for free(). */
char *smalti_failed_print(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error);
int smalti_failed_rebuild(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error);
