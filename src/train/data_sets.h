/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "features/reader.h"

/* Directories of features that are read as if they were one: their shards behind each other. Initialise with
 * zeros. */
struct smalti_training_sets {
	struct smalti_features_set *list;
	int64_t count, shard_count;
	int64_t *rows;   /* rows of each shard of all sets */
	cJSON *identity; /* the data's part of the run's */
};

/* Opens the directories, which have to fit each other. Close them in any case. */
int smalti_training_sets_open(struct smalti_training_sets *sets, const char *const *directories,
			      int64_t count, struct smalti_error *error);
void smalti_training_sets_close(struct smalti_training_sets *sets);

const struct smalti_shard_schema *smalti_training_sets_schema(const struct smalti_training_sets *sets);
/* Returns the largest extents, as smalti_training_data_extent(). */
struct smalti_shard_extent smalti_training_sets_extent(const struct smalti_training_sets *sets);
