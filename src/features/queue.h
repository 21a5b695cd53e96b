/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_FEATURES_QUEUE_H
#define SMALTI_FEATURES_QUEUE_H

#include "features/order.h"
#include "features/set.h"

/* The rows of an order, one after the other: 1, 0 after the last, -1 as smalti_features_next(). */
struct smalti_features_source {
	const struct smalti_features_set *set;
	struct smalti_features_order *order;
	struct smalti_features_shards shards;
	bool complete; /* leave out rows that are not */
};

int smalti_features_source_next(struct smalti_features_source *source, struct smalti_features_row *row,
				struct smalti_error *error);
/* Goes on behind the first `count` rows, without reading values. */
int smalti_features_source_skip(struct smalti_features_source *source, int64_t count,
				struct smalti_error *error);

/* A thread that reads ahead from a source, which is its own from here on. */
struct smalti_features_queue;

struct smalti_features_queue *smalti_features_queue_open(struct smalti_features_source *source, int64_t rows,
							 struct smalti_error *error);
void smalti_features_queue_close(struct smalti_features_queue *queue);
int smalti_features_queue_next(struct smalti_features_queue *queue, struct smalti_features_row *row,
			       struct smalti_error *error);

#endif
