/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/shard.h"

/* Rows that a formula makes of their index, for tests of what keeps and reads them. */
struct made_rows {
	const struct smalti_shard_schema *schema;
	int64_t tokens_max; /* every fifth text, and every seventh image, is missing */
	int64_t latent_max; /* rows and columns */
};

extern const struct smalti_shard_timing made_timing;

/* Pointers until the next call. */
void make_row(const struct made_rows *rows, int64_t index, struct smalti_features_row *row);
bool is_made_row(const struct made_rows *rows, int64_t index, const struct smalti_features_row *row);
/* How many failures the item has: every 11th has one. */
int made_failures(int64_t index);

/* A shard of the items first … end − 1 that has the rows to `stop` − 1. */
int write_shard(const char *path, const struct made_rows *rows, int64_t first, int64_t end, int64_t stop,
		struct smalti_error *error);

/* A directory of them, the items 0 … items − 1 in shards of `each`, completed. */
int write_directory(const char *directory, const struct made_rows *rows, int64_t items, int64_t each,
		    struct smalti_error *error);
/* A way to the shard of the items first … end − 1 in it, in a static buffer. */
const char *shard_path(const char *directory, int64_t first, int64_t end);
