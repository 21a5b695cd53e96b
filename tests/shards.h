/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/shard.h"

/* Rows that a formula makes from their index, for tests of stores and readers. */
struct made_rows {
	const struct smalti_shard_schema *schema;
	int64_t tokens_max; /* every fifth text, and every seventh image, is missing */
	int64_t latent_max; /* rows and columns */
};

extern const struct smalti_shard_timing made_timing;

/* Makes a row, valid until the next call. */
void make_row(const struct made_rows *rows, int64_t index, struct smalti_features_row *row);
bool is_made_row(const struct made_rows *rows, int64_t index, const struct smalti_features_row *row);
/* Returns the item's failures: every 11th has one. */
int made_failures(int64_t index);

/* Writes a shard of the items first … end − 1 with the rows up to `stop` − 1. */
int write_shard(const char *path, const struct made_rows *rows, int64_t first, int64_t end, int64_t stop,
		struct smalti_error *error);

/* Writes a complete directory of the items 0 … items − 1, in shards of `each`. */
int write_directory(const char *directory, const struct made_rows *rows, int64_t items, int64_t each,
		    struct smalti_error *error);
/* Returns the path of the shard of the items first … end − 1 in it, in a static buffer. */
const char *shard_path(const char *directory, int64_t first, int64_t end);
