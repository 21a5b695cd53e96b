/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/error.h>
#include <stdbool.h>
#include <stdint.h>

/** @file
 * Reads the features that `smalti extract` has written: those of a data set's captions (T5) and images (VAE),
 * from the shards of one directory. Every row is verified by its checksum. Needs no session.
 *
 * Threads: a reader is used by one at a time; any number of readers may have one directory open.
 */

SMALTI_BEGIN_DECLS

/** The data type of values. */
enum smalti_features_type { SMALTI_FEATURES_F32, SMALTI_FEATURES_F16, SMALTI_FEATURES_BF16 };

enum { SMALTI_FEATURES_CAPTIONS_MAX = 8 };

/** One caption of an item. */
struct smalti_features_text {
	int64_t tokens;     /**< with the end mark, without padding; 0: the item has no features of it */
	const int32_t *ids; /**< [tokens] */
	const void *values; /**< T5's hidden states [tokens, text_width] */
};

/** The image of an item. */
struct smalti_features_image {
	int64_t height, width;               /**< pixels of the original, turned by its EXIF orientation */
	double ratio;                        /**< height / width of its bin, as in PixArt's tables */
	int64_t latent_height, latent_width; /**< 0: the item has no features of it */
	const void *values; /**< mean, then standard deviation, unscaled: [2·latent_channels, latent_height,
			       latent_width] */
};

/** One item. Pointers are the reader's, until its next call or its close. */
struct smalti_features_row {
	int64_t index;   /**< position in the data set's list, from 0 */
	const char *key; /**< the full relative path, or what the list calls the item; UTF-8 */
	struct smalti_features_text texts[SMALTI_FEATURES_CAPTIONS_MAX]; /**< one per caption key */
	struct smalti_features_image image;
};

/** What is in a directory of features. Strings are the reader's. */
struct smalti_features_info {
	int64_t rows; /**< rows in all committed shards, also of items that failed, wholly or partly */
	enum smalti_features_type type;
	int caption_count; /**< 0: no text in it */
	const char *captions[SMALTI_FEATURES_CAPTIONS_MAX];
	int64_t text_width;      /**< width of T5's hidden states; 0: no text */
	int64_t max_tokens;      /**< that captions were truncated to; 0: no text */
	int64_t latent_channels; /**< of the latents; 0: no images */
	int64_t image_size;      /**< resolution of the bins: 256, 512, 1024, 2048, 2880; 0: no images */
	double scaling_factor;  /**< the diffusion model's latents are these, times the factor; the provenance
				   has "latents_mean" and "latents_std" if the VAE has them */
	const char *provenance; /**< JSON: model, tokenizer, weights, options */
};

struct smalti_features_options {
	bool shuffled; /**< read shards in random order and draw rows from a buffer of `buffer` rows, in an
			  order that `seed` and `epoch` determine */
	uint64_t seed, epoch;
	int64_t buffer; /**< rows; 0: 1024 */
	/** This is reader number `part` of `parts` readers, which divide the shards among them. @{ */
	int64_t part, parts;
	/** @} */
	int64_t skip;     /**< skip so many rows of that order, to resume a stopped epoch */
	bool complete;    /**< leave out rows that lack a caption's or the image's features */
	int64_t prefetch; /**< number of rows that a thread reads ahead; 0: no thread */
};

void smalti_features_defaults(struct smalti_features_options *options);

struct smalti_features;

/** Opens the directory's committed shards. NULL with SMALTI_EIO, SMALTI_EFORMAT (no directory of features) or
 * SMALTI_ECORRUPT (two of its shards have the same items). `options` NULL: the defaults. */
struct smalti_features *smalti_features_open(const char *directory,
					     const struct smalti_features_options *options,
					     struct smalti_error *error);
void smalti_features_close(struct smalti_features *features); /**< NULL is allowed */
void smalti_features_info(const struct smalti_features *features, struct smalti_features_info *info);

/** The next row: 1; 0 after the last one; -1 with SMALTI_ECORRUPT (names the shard and the row; the next call
 * goes on behind it) or SMALTI_EIO. */
int smalti_features_next(struct smalti_features *features, struct smalti_features_row *row,
			 struct smalti_error *error);

/** The row of the item with this index: 0, or -1 (SMALTI_EINVAL: no such row). Does not disturb next(). */
int smalti_features_get(struct smalti_features *features, int64_t index, struct smalti_features_row *row,
			struct smalti_error *error);

SMALTI_END_DECLS
