/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/layout.h"
#include "base/utf8.h"

#include <math.h>

static const struct smalti_shard_kind kinds[] = {
    [SMALTI_ITEM_INDEX] = {"/items/index", SMALTI_UNIT_U64, 1, SMALTI_PER_ROW},
    [SMALTI_ITEM_KEY] = {"/items/key", SMALTI_UNIT_TEXT, 1, SMALTI_PER_ROW},
    [SMALTI_ITEM_XXH3] = {"/items/xxh3", SMALTI_UNIT_U64, 1, SMALTI_PER_ROW},
    [SMALTI_IMAGE_START] = {"/picture/start", SMALTI_UNIT_I64, 1, SMALTI_PER_ROW},
    [SMALTI_IMAGE_SHAPE] = {"/picture/shape", SMALTI_UNIT_U32, 2, SMALTI_PER_ROW},
    [SMALTI_IMAGE_SIZE] = {"/picture/size", SMALTI_UNIT_U32, 2, SMALTI_PER_ROW},
    [SMALTI_IMAGE_RATIO] = {"/picture/ratio", SMALTI_UNIT_F64, 1, SMALTI_PER_ROW},
    [SMALTI_IMAGE_VALUES] = {"/picture/values", SMALTI_UNIT_VALUE, 1, SMALTI_PER_VALUE},
    [SMALTI_FAILURE_INDEX] = {"/failures/index", SMALTI_UNIT_U64, 1, SMALTI_PER_FAILURE},
    [SMALTI_FAILURE_KEY] = {"/failures/key", SMALTI_UNIT_TEXT, 1, SMALTI_PER_FAILURE},
    [SMALTI_FAILURE_STAGE] = {"/failures/stage", SMALTI_UNIT_TEXT, 1, SMALTI_PER_FAILURE},
    [SMALTI_FAILURE_REASON] = {"/failures/reason", SMALTI_UNIT_TEXT, 1, SMALTI_PER_FAILURE},
    [SMALTI_TEXT_START] = {"/start", SMALTI_UNIT_I64, 1, SMALTI_PER_ROW},
    [SMALTI_TEXT_COUNT] = {"/count", SMALTI_UNIT_U32, 1, SMALTI_PER_ROW},
    [SMALTI_TEXT_IDS] = {"/ids", SMALTI_UNIT_I32, 1, SMALTI_PER_TOKEN},
    [SMALTI_TEXT_VALUES] = {"/values", SMALTI_UNIT_VALUE, 0, SMALTI_PER_TOKEN},
};

const enum smalti_shard_array smalti_shard_texts[SMALTI_SHARD_TEXTS] = {
    SMALTI_ITEM_KEY, SMALTI_FAILURE_KEY, SMALTI_FAILURE_STAGE, SMALTI_FAILURE_REASON};

enum { TEXT_ARRAYS = SMALTI_TEXT_VALUES - SMALTI_TEXT_START + 1 };

int smalti_shard_text_array(int caption, enum smalti_shard_array array)
{
	return (int)array + caption * TEXT_ARRAYS;
}

int smalti_shard_array_caption(int array)
{
	return array < SMALTI_TEXT_START ? -1 : (array - SMALTI_TEXT_START) / TEXT_ARRAYS;
}

const struct smalti_shard_kind *smalti_shard_array_kind(int array)
{
	const int caption = smalti_shard_array_caption(array);
	return &kinds[caption > 0 ? array - caption * TEXT_ARRAYS : array];
}

bool smalti_shard_has(const struct smalti_shard_schema *schema, int array)
{
	if (array >= SMALTI_TEXT_START)
		return smalti_shard_array_caption(array) < schema->caption_count;
	return array < SMALTI_IMAGE_START || array > SMALTI_IMAGE_VALUES || schema->latent_channels > 0;
}

int64_t smalti_shard_entry_bytes(const struct smalti_shard_schema *schema, int array)
{
	const struct smalti_shard_kind *kind = smalti_shard_array_kind(array);
	const int64_t bytes[] = {
	    [SMALTI_UNIT_U32] = 4,
	    [SMALTI_UNIT_U64] = 8,
	    [SMALTI_UNIT_I32] = 4,
	    [SMALTI_UNIT_I64] = 8,
	    [SMALTI_UNIT_F64] = 8,
	    [SMALTI_UNIT_TEXT] = 0,
	    [SMALTI_UNIT_VALUE] = smalti_dtype_bytes(schema->dtype),
	};
	return bytes[kind->unit] * (kind->columns ? kind->columns : schema->text_width);
}

/* Keeps a row in one piece or few, and values of many shards in memory while they are written. A compressed
 * chunk has to be inflated as a whole for any row in it. */
int64_t smalti_shard_chunk(const struct smalti_shard_schema *schema, int array)
{
	enum { CHUNK_BYTES = 4 << 20, COMPRESSED_CHUNK_BYTES = 1 << 18 };
	const int64_t bytes = schema->compress ? COMPRESSED_CHUNK_BYTES : CHUNK_BYTES;
	const int64_t entry_bytes = smalti_shard_entry_bytes(schema, array);
	if (smalti_shard_array_kind(array)->unit != SMALTI_UNIT_VALUE)
		return 0;
	return entry_bytes < bytes ? bytes / entry_bytes : 1;
}

int64_t smalti_shard_row_memory(const struct smalti_shard_schema *schema,
				const struct smalti_features_row *row)
{
	int64_t bytes = (int64_t)strlen(row->key) + 1;
	for (int array = 0; array < SMALTI_SHARD_ARRAYS; array++) {
		const struct smalti_shard_kind *kind = smalti_shard_array_kind(array);
		const int caption = smalti_shard_array_caption(array);
		const int64_t tokens =
		    caption >= 0 && kind->axis == SMALTI_PER_TOKEN ? row->texts[caption].tokens : 0;
		const int64_t entries = kind->axis == SMALTI_PER_ROW ? 1 : tokens;
		if (kind->unit != SMALTI_UNIT_VALUE && smalti_shard_has(schema, array))
			bytes += entries * smalti_shard_entry_bytes(schema, array);
	}
	return bytes;
}

void smalti_shard_caption_path(const char *caption, char path[SMALTI_SHARD_PATH])
{
	size_t at = (size_t)snprintf(path, SMALTI_SHARD_PATH, "/text/");
	for (const char *c = caption; *c && at + 4 < SMALTI_SHARD_PATH; c++) {
		const bool plain = *c != '/' && *c != '%' && (*c != '.' || c > caption);
		at += (size_t)snprintf(path + at, 4, plain ? "%c" : "%%%02X", (unsigned char)*c);
	}
}

void smalti_shard_array_path(const struct smalti_shard_schema *schema, int array,
			     char path[SMALTI_SHARD_PATH])
{
	const int caption = smalti_shard_array_caption(array);
	path[0] = '\0';
	if (caption >= 0)
		smalti_shard_caption_path(schema->captions[caption], path);
	const size_t at = strlen(path);
	snprintf(path + at, SMALTI_SHARD_PATH - at, "%s", smalti_shard_array_kind(array)->path);
}

static int check_captions(const struct smalti_shard_schema *schema, struct smalti_error *error)
{
	for (int i = 0; i < schema->caption_count; i++) {
		const size_t length = strlen(schema->captions[i]);
		if (length == 0 || length > SMALTI_SHARD_CAPTION_BYTES ||
		    !smalti_utf8_valid(schema->captions[i], length))
			return smalti_fail(error, SMALTI_EINVAL,
					   "the caption key \"%.64s\": 1 to %d bytes of UTF-8 were expected",
					   schema->captions[i], SMALTI_SHARD_CAPTION_BYTES);
		for (int j = 0; j < i; j++)
			if (strcmp(schema->captions[i], schema->captions[j]) == 0)
				return smalti_fail(error, SMALTI_EINVAL,
						   "the caption key \"%s\" is there twice",
						   schema->captions[i]);
	}
	return 0;
}

int smalti_shard_check_schema(const struct smalti_shard_schema *schema, struct smalti_error *error)
{
	enum { WIDTH_MAX = 1 << 20, CHANNELS_MAX = 1 << 16 };
	const int captions = schema->caption_count;
	if ((int)schema->dtype < SMALTI_F32 || schema->dtype > SMALTI_BF16)
		return smalti_fail(error, SMALTI_EINVAL, "values of an unknown type");
	if (captions < 0 || captions > SMALTI_FEATURES_CAPTIONS_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "0 to %d caption keys were expected, found %d",
				   SMALTI_FEATURES_CAPTIONS_MAX, captions);
	if (schema->text_width < (captions > 0) || schema->text_width > WIDTH_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "texts of an impossible width: %" PRId64,
				   schema->text_width);
	if (schema->latent_channels < 0 || schema->latent_channels > CHANNELS_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "latents of %" PRId64 " channels",
				   schema->latent_channels);
	if (schema->max_tokens < 0 || schema->image_size < 0 || !isfinite(schema->scaling_factor))
		return smalti_fail(error, SMALTI_EINVAL, "a negative length or size, or an infinite factor");
	return check_captions(schema, error);
}

const char *smalti_shard_schema_difference(const struct smalti_shard_schema *a,
					   const struct smalti_shard_schema *b)
{
	bool same = a->caption_count == b->caption_count && a->text_width == b->text_width &&
		    a->max_tokens == b->max_tokens;
	for (int i = 0; same && i < a->caption_count; i++)
		same = strcmp(a->captions[i], b->captions[i]) == 0;
	if (a->dtype != b->dtype)
		return "type of the values";
	if (!same)
		return "captions";
	return a->latent_channels != b->latent_channels || a->image_size != b->image_size ||
		       a->scaling_factor < b->scaling_factor || a->scaling_factor > b->scaling_factor
		   ? "pictures"
		   : NULL;
}
