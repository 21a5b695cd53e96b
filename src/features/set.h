/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_FEATURES_SET_H
#define SMALTI_FEATURES_SET_H

#include "shard/shard.h"
#include "store/shards.h"

/* The committed shards of a directory, as they were when it was opened. Not changed afterwards: for any
 * thread.
 */
struct smalti_features_set {
	char *directory;
	struct smalti_shards shards;
	int64_t *rows; /* of each shard */
	int64_t row_count;
	struct smalti_shard *model; /* one of them, whose schema all have; NULL: there are none */
};

int smalti_features_set_open(struct smalti_features_set *set, const char *directory,
			     struct smalti_error *error);
void smalti_features_set_close(struct smalti_features_set *set);
/* The shard that has an item; -1: none. */
int64_t smalti_features_set_find(const struct smalti_features_set *set, int64_t index);

/* Shards that one thread has open, those used last. Initialise with zeros. */
enum { SMALTI_FEATURES_OPEN_MAX = 64 };

struct smalti_features_shards {
	struct smalti_features_opened {
		int64_t number;             /* of the shard, from 1; 0: free */
		int64_t used;               /* when it was */
		struct smalti_shard *shard; /* NULL: it cannot be opened, `error` says why */
		struct smalti_error error;
	} opened[SMALTI_FEATURES_OPEN_MAX];
	int64_t clock;
};

/* Opened if need be; NULL with an error. Until the next call. */
struct smalti_shard *smalti_features_shards_get(struct smalti_features_shards *shards,
						const struct smalti_features_set *set, int64_t number,
						struct smalti_error *error);
void smalti_features_shards_close(struct smalti_features_shards *shards);

#endif
