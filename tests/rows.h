/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/shard.h"

enum { TEST_TOKENS = 24, TEST_WIDTH = 16, TEST_CHANNELS = 4, TEST_EDGE = 9 };

extern const struct smalti_shard_schema test_rows_schema;

/* A row that depends on its index alone: pseudo-random values, lengths, extents. */
struct test_row {
	char key[64];
	int32_t ids[TEST_TOKENS];
	uint16_t text[TEST_TOKENS * TEST_WIDTH];
	uint16_t image[2 * TEST_CHANNELS * TEST_EDGE * TEST_EDGE];
	struct smalti_features_row row; /* points to the members above */
};

/* Makes a row. Some lack their caption, some their image, some both; with `whole` none does. */
void test_row_make(struct test_row *to, int64_t index, bool whole);
/* Tells up to 2 reasons for what it lacks; returns their number. */
int test_row_failures(const struct test_row *row, struct smalti_shard_failure failures[2]);
/* Returns XXH3 of all that is in it. */
uint64_t test_row_digest(const struct smalti_shard_schema *schema, const struct smalti_features_row *row);

/* Appends the row and the reasons for what it lacks. */
int test_row_append(struct smalti_shard_writer *writer, int64_t index, bool whole,
		    struct smalti_error *error);
