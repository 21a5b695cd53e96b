/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/compression.h"

#include "shard/deflate.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_BYTES = 1 << 20, WORTH_PERCENT = 80 };

struct sample {
	unsigned char *bytes;
	size_t count;
};

static void add(struct sample *sample, const void *values, int64_t count, int64_t size)
{
	const size_t left = SAMPLE_BYTES - sample->count;
	const size_t bytes = (size_t)(count * size) < left ? (size_t)(count * size) : left;
	if (values)
		memcpy(sample->bytes + sample->count, values, bytes);
	sample->count += values ? bytes : 0;
}

static void fill(struct sample *sample, const struct smalti_shard_schema *schema,
		 const struct smalti_window *window)
{
	const int64_t size = smalti_dtype_bytes(schema->dtype);
	for (int64_t i = 0; i < window->count && sample->count < SAMPLE_BYTES; i++) {
		const struct smalti_extract_item *item = &window->items[i];
		for (int k = 0; k < schema->caption_count; k++)
			add(sample, item->row.texts[k].values, item->row.texts[k].tokens * schema->text_width,
			    size);
		add(sample, item->row.image.values,
		    2 * schema->latent_channels * item->row.image.latent_height *
			item->row.image.latent_width,
		    size);
	}
}

static bool shrinks(const struct sample *sample, int64_t size)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	struct smalti_deflated deflated;
	struct smalti_deflater *deflater = smalti_deflater_open(&ignored);
	const int64_t count = (int64_t)sample->count;
	const bool worth = deflater &&
			   smalti_deflate(deflater, sample->bytes, count, size, &deflated, &ignored) == 0 &&
			   deflated.bytes * 100 <= count * WORTH_PERCENT;
	smalti_deflater_close(deflater);
	return worth;
}

bool smalti_choose_compression(enum smalti_compression compression, const struct smalti_shard_schema *schema,
			       const struct smalti_window *window)
{
	if (compression != SMALTI_COMPRESS_AUTO)
		return compression == SMALTI_COMPRESS_ALWAYS;
	struct sample sample = {.bytes = malloc(SAMPLE_BYTES)};
	if (sample.bytes)
		fill(&sample, schema, window);
	const bool worth = sample.count && shrinks(&sample, smalti_dtype_bytes(schema->dtype));
	free(sample.bytes);
	return worth;
}
