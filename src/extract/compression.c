/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/compression.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SAMPLE_BYTES = 1 << 20, LEVEL = 4, WORTH_PERCENT = 80 };

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
			add(sample, item->texts[k].values, item->texts[k].tokens * schema->text_width, size);
		add(sample, item->picture.values,
		    2 * schema->latent_channels * item->picture.latent_height * item->picture.latent_width,
		    size);
	}
}

/* The first bytes of all values, then the second ones: as HDF5's shuffle filter does. */
static void shuffle(const struct sample *sample, size_t size, unsigned char *shuffled)
{
	const size_t count = sample->count / size;
	for (size_t i = 0; i < count; i++)
		for (size_t byte = 0; byte < size; byte++)
			shuffled[byte * count + i] = sample->bytes[i * size + byte];
}

static bool shrinks(const struct sample *sample, size_t size)
{
	uLongf packed = compressBound(sample->count);
	unsigned char *shuffled = malloc(sample->count), *target = malloc(packed);
	bool worth = false;
	if (shuffled && target) {
		shuffle(sample, size, shuffled);
		worth = compress2(target, &packed, shuffled, sample->count, LEVEL) == Z_OK &&
			packed * 100 <= sample->count * WORTH_PERCENT;
	}
	free(shuffled);
	free(target);
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
	const bool worth = sample.count && shrinks(&sample, (size_t)smalti_dtype_bytes(schema->dtype));
	free(sample.bytes);
	return worth;
}
