/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_FEATURES_ORDER_H
#define SMALTI_FEATURES_ORDER_H

#include "base/error.h"
#include "smalti/features.h"

/* In which order rows are read: a function of the options and the shards' sizes alone (docs/features.md). */
struct smalti_features_order;

/* A row: of a shard, and which of its rows. */
struct smalti_features_place {
	int64_t shard, row;
};

/* Of shards with these numbers of rows. */
struct smalti_features_order *smalti_features_order_open(const struct smalti_features_options *options,
							 const int64_t *rows, int64_t shards,
							 struct smalti_error *error);
void smalti_features_order_close(struct smalti_features_order *order);
/* False: there are no more. */
bool smalti_features_order_next(struct smalti_features_order *order, struct smalti_features_place *place);
/* The same as `count` calls of it. */
void smalti_features_order_skip(struct smalti_features_order *order, int64_t count);

#endif
