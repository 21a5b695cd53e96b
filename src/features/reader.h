/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/shard.h"
#include "smalti/features.h"
#include "store/shards.h"

/* The committed shards of a directory, as they were when it was opened. Not changed afterwards: for any
 * thread.
 */
struct smalti_features_set {
	char *directory;
	struct smalti_shards shards;
	int64_t *rows; /* of each shard */
	int64_t row_count;
	int64_t first_index; /* added to the items' indices, where several directories are read as one */
	struct smalti_shard *model; /* one of them, whose schema all have; NULL: there are none */
};

int smalti_features_set_open(struct smalti_features_set *set, const char *directory,
			     struct smalti_error *error);
void smalti_features_set_close(struct smalti_features_set *set);
/* Returns the number of an item's shard, or -1. */
int64_t smalti_features_set_find(const struct smalti_features_set *set, int64_t index);

/* Shards that one thread has open, those used last. Initialise with zeros. */
enum { SMALTI_FEATURES_OPEN_MAX = 64 };

struct smalti_features_shards {
	struct smalti_features_opened {
		const struct smalti_features_set *set;
		int64_t number;             /* of the shard, from 1; 0: free */
		int64_t used;               /* when it was */
		struct smalti_shard *shard; /* NULL: it cannot be opened, `error` says why */
		struct smalti_error error;
	} opened[SMALTI_FEATURES_OPEN_MAX];
	int64_t clock;
};

/* Returns a shard, opened if need be, until the next call; NULL with an error. */
struct smalti_shard *smalti_features_shards_get(struct smalti_features_shards *shards,
						const struct smalti_features_set *set, int64_t number,
						struct smalti_error *error);
void smalti_features_shards_close(struct smalti_features_shards *shards);

/* In which order rows are read: a function of the options and the shards' sizes alone (docs/features.md). */
struct smalti_features_order;

/* A row: of a shard, and which of its rows. */
struct smalti_features_place {
	int64_t shard, row;
};

/* Orders shards with these numbers of rows. */
struct smalti_features_order *smalti_features_order_open(const struct smalti_features_options *options,
							 const int64_t *rows, int64_t shards,
							 struct smalti_error *error);
void smalti_features_order_close(struct smalti_features_order *order);
/* Returns false if there are no more. */
bool smalti_features_order_next(struct smalti_features_order *order, struct smalti_features_place *place);
/* Does what `count` calls of it do. */
void smalti_features_order_skip(struct smalti_features_order *order, int64_t count);

/* The rows of an order, one after the other: 1, 0 after the last, -1 as smalti_features_next(). The order is
 * that of the shards of all sets behind each other, which have one schema. */
struct smalti_features_source {
	const struct smalti_features_set *sets;
	int64_t set_count;
	struct smalti_features_order *order;
	struct smalti_features_shards shards;
	bool complete; /* leave out rows that are not */
	/* Tells whether to read a row's token ids and values, which are NULL otherwise: 1, 0, or -1 with an
	 * error. `head` is the row without them. It is called for each row in turn, on the thread that
	 * reads. NULL: all are read. */
	int (*wants)(void *user, const struct smalti_features_row *head, struct smalti_error *error);
	void *user;
};

/* Opens the directory's rows without their token ids and values, which are NULL. */
struct smalti_features *smalti_features_open_heads(const char *directory, struct smalti_error *error);

/* A row that cannot be read has its index. */
int smalti_features_source_next(struct smalti_features_source *source, struct smalti_features_row *row,
				struct smalti_error *error);
/* Reads the row of the item with this index, until the next call; not while a queue reads from the source. */
int smalti_features_source_get(struct smalti_features_source *source, int64_t index,
			       struct smalti_features_row *row, struct smalti_error *error);

/* A thread that reads ahead from a source, which is its own from here on. */
struct smalti_features_queue;

struct smalti_features_queue *smalti_features_queue_open(struct smalti_features_source *source, int64_t rows,
							 struct smalti_error *error);
void smalti_features_queue_close(struct smalti_features_queue *queue);
int smalti_features_queue_next(struct smalti_features_queue *queue, struct smalti_features_row *row,
			       struct smalti_error *error);
