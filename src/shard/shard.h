/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"
#include "smalti/features.h"

/* A shard: one HDF5 file with the features of the items first … end − 1 of a data set, packed without padding
 * (the layout: docs/features.md). */

/* The schema that all shards of a directory share. */
struct smalti_shard_schema {
	enum smalti_dtype dtype; /* of the values */
	int caption_count;
	const char *captions[SMALTI_FEATURES_CAPTIONS_MAX];
	int64_t text_width, max_tokens;
	int64_t latent_channels, image_size;
	double scaling_factor;
	bool compress;          /* with DEFLATE behind HDF5's shuffle filter; else rows can be mapped */
	const char *provenance; /* JSON */
};

_Static_assert((int)SMALTI_FEATURES_F16 == (int)SMALTI_F16 && (int)SMALTI_FEATURES_BF16 == (int)SMALTI_BF16,
	       "the public types of features are dtypes");

/* Why an item has no features, or not all. */
struct smalti_shard_failure {
	int64_t index;
	const char *key;
	const char *stage;  /* "list", "caption", "tokens", "t5", "image", "vae" */
	const char *reason; /* one line */
};

/* How long the parts of the work took. */
struct smalti_shard_timing {
	double began, ended;                /* seconds since 1970 */
	double text_seconds, image_seconds; /* of worker time */
	int64_t tokens, pixels;
};

/* Writing. The file is PATH itself: the caller makes it appear (store.h). One thread of the process writes:
 * HDF5 is not thread-safe. Here and below values of a row are of the schema's type, little-endian. */
struct smalti_rate;
struct smalti_shard_writer;
struct smalti_shard;

struct smalti_shard_writer *smalti_shard_create(const char *path, const struct smalti_shard_schema *schema,
						int64_t first, int64_t end, struct smalti_error *error);
/* Adds what is written from now on to `rate`, which outlives the writer. */
void smalti_shard_meter(struct smalti_shard_writer *writer, struct smalti_rate *rate);
/* Appends the next row: of index first, first + 1 and so on; what it lacks has 0 tokens, or a latent height
 * of 0. */
int smalti_shard_append(struct smalti_shard_writer *writer, const struct smalti_features_row *row,
			struct smalti_error *error);
/* Says why the row that was appended last lacks something; any number of times. */
int smalti_shard_fail(struct smalti_shard_writer *writer, const struct smalti_shard_failure *failure,
		      struct smalti_error *error);
/* Completes and closes the file and fsyncs it; with fewer rows than announced its end is less. Then it is
 * opened again and verified. NULL on failure: the file is to be removed. Frees the writer in any case. */
struct smalti_shard *smalti_shard_finish(struct smalti_shard_writer *writer,
					 const struct smalti_shard_timing *timing,
					 struct smalti_error *error);
void smalti_shard_discard(struct smalti_shard_writer *writer); /* NULL is fine */

/* Opens any file, which may be hostile: what the header says is checked against the file's size and the
 * datasets' before it is believed. */
struct smalti_shard *smalti_shard_open(const char *path, struct smalti_error *error);
/* Opens a shard and checks its index alone: what is not values (keys, token ids, extents) is trusted only as
 * far as the checksum of a row holds. */
struct smalti_shard *smalti_shard_open_unchecked(const char *path, struct smalti_error *error);
void smalti_shard_close(struct smalti_shard *shard); /* NULL is fine */
SCOPED_RELEASE(struct smalti_shard *, smalti_shard_close)
/* Fails if the file has lost bytes since it was opened, which may have been read as zeros. Call it after
 * functions that have no error of their own. */
int smalti_shard_check(const struct smalti_shard *shard, struct smalti_error *error);
struct smalti_shard_info {
	const struct smalti_shard_schema *schema;
	int64_t first, end;
	int64_t bytes; /* of the file */
	int64_t failures;
	uint64_t seal; /* a checksum over all of its checksums: that of another shard is another */
};
const struct smalti_shard_info *smalti_shard_info(const struct smalti_shard *shard);
/* Reads row `index` and checks its checksum (ECORRUPT names shard and row). Pointers hold until the next call
 * or the close. */
int smalti_shard_row(struct smalti_shard *shard, int64_t index, struct smalti_features_row *row,
		     struct smalti_error *error);
/* Reads row `index` without its token ids and values, whose pointers are NULL, and without its checksum. */
int smalti_shard_row_head(struct smalti_shard *shard, int64_t index, struct smalti_features_row *row,
			  struct smalti_error *error);
/* Tells whether the row (which has to be in it) has every caption's features, and the image's. */
bool smalti_shard_row_is_complete(const struct smalti_shard *shard, int64_t index);
/* The size of the features of row `index` (which has to be in it), without a look at their values: the
 * longest caption's tokens, and the latents. What the schema does not allow is taken as nothing. */
struct smalti_shard_extent {
	int64_t tokens, latent_height, latent_width;
};
struct smalti_shard_extent smalti_shard_row_extent(const struct smalti_shard *shard, int64_t index);
/* Reads failure 0 and so on, in the order of their indices. */
int smalti_shard_failure(struct smalti_shard *shard, int64_t number, struct smalti_shard_failure *failure,
			 struct smalti_error *error);
