/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/shard.h"

enum { SMALTI_SHARD_VERSION = 2 }; /* of the format */

/* The arrays of a shard (docs/features.md), to write, read and join them. */

enum smalti_shard_unit {
	SMALTI_UNIT_U32,
	SMALTI_UNIT_U64,
	SMALTI_UNIT_I32,
	SMALTI_UNIT_I64, /* what is calculated with: with u64, NumPy makes floats of it */
	SMALTI_UNIT_F64,
	SMALTI_UNIT_TEXT,
	SMALTI_UNIT_VALUE /* of the schema's type */
};

/* What an array has one entry for. */
enum smalti_shard_axis { SMALTI_PER_ROW, SMALTI_PER_TOKEN, SMALTI_PER_VALUE, SMALTI_PER_FAILURE };

enum smalti_shard_array {
	SMALTI_ITEM_INDEX,
	SMALTI_ITEM_KEY,
	SMALTI_ITEM_XXH3,
	SMALTI_IMAGE_START,
	SMALTI_IMAGE_SHAPE,
	SMALTI_IMAGE_SIZE,
	SMALTI_IMAGE_RATIO,
	SMALTI_IMAGE_VALUES,
	SMALTI_FAILURE_INDEX,
	SMALTI_FAILURE_KEY,
	SMALTI_FAILURE_STAGE,
	SMALTI_FAILURE_REASON,
	SMALTI_TEXT_START, /* from here on: of each caption */
	SMALTI_TEXT_COUNT,
	SMALTI_TEXT_IDS,
	SMALTI_TEXT_VALUES,
	SMALTI_SHARD_ARRAYS = SMALTI_TEXT_VALUES + 1 + (SMALTI_FEATURES_CAPTIONS_MAX - 1) * 4,
};

/* The arrays of texts, whose entries are as long as the longest. */
enum { SMALTI_SHARD_TEXTS = 4 };
extern const enum smalti_shard_array smalti_shard_texts[SMALTI_SHARD_TEXTS];

struct smalti_shard_kind {
	const char *path; /* a text's begins behind its caption's directory */
	enum smalti_shard_unit unit;
	int columns; /* 0: the text width */
	enum smalti_shard_axis axis;
};

/* Returns the id of a text's array. */
int smalti_shard_text_array(int caption, enum smalti_shard_array array);
/* Returns the caption that an array is of; -1: of none. */
int smalti_shard_array_caption(int array);
const struct smalti_shard_kind *smalti_shard_array_kind(int array);
/* Tells whether shards of this schema have the array. */
bool smalti_shard_has(const struct smalti_shard_schema *schema, int array);
/* Returns the bytes of one entry; 0 for texts, whose length is the longest one's. */
int64_t smalti_shard_entry_bytes(const struct smalti_shard_schema *schema, int array);

/* Returns the entries in a chunk of values: all chunks but the last are full, and fewer entries are in one
 * piece. 0: always in one piece, as all else. */
int64_t smalti_shard_chunk(const struct smalti_shard_schema *schema, int array);
/* Returns the bytes that a row has in memory until its shard is written: all but its values and failures. */
int64_t smalti_shard_row_memory(const struct smalti_shard_schema *schema,
				const struct smalti_features_row *row);

enum { SMALTI_SHARD_CAPTION_BYTES = 255, SMALTI_SHARD_PATH = 3 * SMALTI_SHARD_CAPTION_BYTES + 32 };
/* Writes an array's path in HDF5; '/' and '%' and a leading '.' of captions become %2F, %25 and %2E. */
void smalti_shard_array_path(const struct smalti_shard_schema *schema, int array,
			     char path[SMALTI_SHARD_PATH]);
/* Writes the caption's directory: /text/CAPTION. */
void smalti_shard_caption_path(const char *caption, char path[SMALTI_SHARD_PATH]);

/* Checks that shards can have such a schema. */
int smalti_shard_check_schema(const struct smalti_shard_schema *schema, struct smalti_error *error);

/* Returns what differs between two besides provenance and compression, for a person: "its %s is not that of
 * …"; or NULL. */
const char *smalti_shard_schema_difference(const struct smalti_shard_schema *a,
					   const struct smalti_shard_schema *b);

/* Computes XXH3 over all of a row. */
int smalti_shard_checksum(const struct smalti_shard_schema *schema, const struct smalti_features_row *row,
			  uint64_t *checksum, struct smalti_error *error);
/* Compute the bytes of the values of a text, and of an image; false: more than 2^63, or negative extents. */
bool smalti_shard_text_bytes(const struct smalti_shard_schema *schema,
			     const struct smalti_features_text *text, int64_t *bytes);
bool smalti_shard_image_bytes(const struct smalti_shard_schema *schema,
			      const struct smalti_features_image *image, int64_t *bytes);
