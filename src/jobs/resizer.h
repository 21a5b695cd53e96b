/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "kernels/resize.h"

/* How an image gets another shape. It is resized to `height` by `width`; then `crop_height` rows from `top`
 * on and `crop_width` columns from `left` on are kept. */
struct smalti_fit {
	int64_t height, width;
	int64_t top, left;
	int64_t crop_height, crop_width;
};

/* The longest side of an image, before and after; the shortest is 1. */
enum { SMALTI_FIT_SIDE_MAX = INT32_MAX };

/* Resizes straight to the shape, with changed proportions, as the reference's extraction does with bins
 * (docs/reference.md 6.4). */
struct smalti_fit smalti_fit_stretch(int64_t height, int64_t width);

/* Resizes an image of from_height by from_width in proportion until it covers the shape, and cuts the excess
 * off evenly, as the reference's training does (docs/reference.md 6.6), and with a square its extraction at
 * one scale (6.4). EINVAL for a side that no image has, or that becomes too long. */
int smalti_fit_cover(int64_t from_height, int64_t from_width, int64_t height, int64_t width,
		     struct smalti_fit *fit, struct smalti_error *error);

/* Resizes and crops an image row by row. It holds only the rows that a row of the result needs, at the
 * result's width. The bits are those of the whole image resized by Pillow, then cropped. */
struct smalti_resizer;

/* Gives rows first … first + count − 1 of the image, [count, width, 3] of 8-bit RGB. Each call begins where
 * the last ended. */
typedef int smalti_resizer_source(void *user, int64_t first, int64_t count, uint8_t *rows,
				  struct smalti_error *error);

/* Opens a resizer of an image of height by width that `source` gives; reads nothing yet. EINVAL for a fit
 * with sides that no image has, or with a crop outside of them. */
struct smalti_resizer *smalti_resizer_open(int64_t height, int64_t width, const struct smalti_fit *fit,
					   enum smalti_filter filter, smalti_resizer_source *source,
					   void *user, struct smalti_error *error);

/* Makes rows first … first + count − 1 of the crop, [count, crop_width, 3]; each call begins where the last
 * ended. With the last row the source is read to the image's end, so that damage there is found. After a
 * failure only the close is allowed. */
int smalti_resizer_rows(struct smalti_resizer *resizer, int64_t first, int64_t count, uint8_t *rows,
			struct smalti_error *error);

void smalti_resizer_close(struct smalti_resizer *resizer); /* NULL is fine */
