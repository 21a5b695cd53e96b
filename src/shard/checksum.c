/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/layout.h"

#include <xxhash.h>

bool smalti_shard_text_bytes(const struct smalti_shard_schema *schema,
			     const struct smalti_features_text *text, int64_t *bytes)
{
	*bytes = smalti_dtype_bytes(schema->dtype);
	return smalti_multiply(bytes, schema->text_width) && smalti_multiply(bytes, text->tokens);
}

bool smalti_shard_image_bytes(const struct smalti_shard_schema *schema,
			      const struct smalti_features_image *image, int64_t *bytes)
{
	*bytes = 2 * smalti_dtype_bytes(schema->dtype);
	return smalti_multiply(bytes, schema->latent_channels) &&
	       smalti_multiply(bytes, image->latent_height) && smalti_multiply(bytes, image->latent_width);
}

/* Adds a number in 8 bytes, the least first. */
static void add_number(XXH3_state_t *state, uint64_t value)
{
	unsigned char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	XXH3_64bits_update(state, bytes, sizeof(bytes));
}

static void add_bytes(XXH3_state_t *state, const void *data, int64_t bytes)
{
	if (bytes > 0)
		XXH3_64bits_update(state, data, (size_t)bytes);
}

static bool add_text(XXH3_state_t *state, const struct smalti_shard_schema *schema,
		     const struct smalti_features_text *text)
{
	int64_t bytes;
	if (!smalti_shard_text_bytes(schema, text, &bytes))
		return false;
	add_number(state, (uint64_t)text->tokens);
	add_bytes(state, text->ids, text->tokens * (int64_t)sizeof(text->ids[0]));
	add_bytes(state, text->values, bytes);
	return true;
}

static bool add_image(XXH3_state_t *state, const struct smalti_shard_schema *schema,
		      const struct smalti_features_image *image)
{
	int64_t bytes;
	uint64_t ratio;
	if (!smalti_shard_image_bytes(schema, image, &bytes))
		return false;
	memcpy(&ratio, &image->ratio, sizeof(ratio));
	add_number(state, (uint64_t)image->height);
	add_number(state, (uint64_t)image->width);
	add_number(state, ratio);
	add_number(state, (uint64_t)image->latent_height);
	add_number(state, (uint64_t)image->latent_width);
	add_bytes(state, image->values, bytes);
	return true;
}

int smalti_shard_checksum(const struct smalti_shard_schema *schema, const struct smalti_features_row *row,
			  uint64_t *checksum, struct smalti_error *error)
{
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_64bits_reset(state);
	const int64_t length = (int64_t)strlen(row->key);
	add_number(state, (uint64_t)row->index);
	add_number(state, (uint64_t)length);
	add_bytes(state, row->key, length);
	bool ok = true;
	for (int i = 0; i < schema->caption_count; i++)
		ok = ok && add_text(state, schema, &row->texts[i]);
	if (schema->latent_channels > 0)
		ok = ok && add_image(state, schema, &row->image);
	*checksum = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return ok ? 0 : smalti_fail(error, SMALTI_EINVAL, "a row of impossible extents");
}
