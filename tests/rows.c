/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "shard/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

const struct smalti_shard_schema test_rows_schema = {
    .dtype = SMALTI_F16,
    .caption_count = 1,
    .captions = {"prompt"},
    .text_width = TEST_WIDTH,
    .max_tokens = TEST_TOKENS,
    .latent_channels = TEST_CHANNELS,
    .image_size = 256,
    .scaling_factor = 0.18215,
    .provenance = "{\"model\":\"none\",\"weights\":\"0123\"}",
};

static uint64_t next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return XXH3_64bits(state, sizeof(*state));
}

/* Finite halves between 1 and 2, of either sign. */
static void fill(uint16_t *to, int64_t count, uint64_t *state)
{
	for (int64_t i = 0; i < count; i++)
		to[i] = (uint16_t)((next(state) & 0x83ff) | 0x3c00);
}

void test_row_make(struct test_row *to, int64_t index, bool whole)
{
	uint64_t state = (uint64_t)index * 1000003;
	*to = (struct test_row){0};
	snprintf(to->key, sizeof(to->key), "directory %" PRId64 "/%08" PRIx64 ".jpg", index % 3,
		 next(&state) & 0xffffffff);
	const int64_t tokens = 1 + (int64_t)(next(&state) % TEST_TOKENS);
	const int64_t height = 1 + (int64_t)(next(&state) % TEST_EDGE);
	const int64_t width = 1 + (int64_t)(next(&state) % TEST_EDGE);
	for (int64_t i = 0; i < tokens; i++)
		to->ids[i] = (int32_t)(next(&state) % 32000);
	fill(to->text, tokens * TEST_WIDTH, &state);
	fill(to->image, 2 * TEST_CHANNELS * height * width, &state);
	to->row = (struct smalti_features_row){.index = index, .key = to->key};
	if (whole || index % 37 != 5)
		to->row.texts[0] = (struct smalti_features_text){tokens, to->ids, to->text};
	to->row.image = (struct smalti_features_image){.height = 8 * height, .width = 8 * width};
	if (whole || index % 41 != 5) {
		to->row.image.ratio = (double)height / (double)width;
		to->row.image.latent_height = height;
		to->row.image.latent_width = width;
		to->row.image.values = to->image;
	}
}

int test_row_failures(const struct test_row *row, struct smalti_shard_failure failures[2])
{
	int count = 0;
	if (row->row.texts[0].tokens == 0)
		failures[count++] = (struct smalti_shard_failure){row->row.index, row->key, "caption",
								  "\"prompt\" is missing"};
	if (row->row.image.latent_height == 0)
		failures[count++] =
		    (struct smalti_shard_failure){row->row.index, row->key, "picture", "not an image"};
	return count;
}

uint64_t test_row_digest(const struct smalti_shard_schema *schema, const struct smalti_features_row *row)
{
	uint64_t digest = 0;
	if (smalti_shard_checksum(schema, row, &digest, NULL))
		abort();
	return digest;
}

int test_row_append(struct smalti_shard_writer *writer, int64_t index, bool whole, struct smalti_error *error)
{
	struct test_row row;
	struct smalti_shard_failure failures[2];
	test_row_make(&row, index, whole);
	int status = smalti_shard_append(writer, &row.row, error);
	const int count = test_row_failures(&row, failures);
	for (int i = 0; i < count && status == 0; i++)
		status = smalti_shard_fail(writer, &failures[i], error);
	return status;
}
