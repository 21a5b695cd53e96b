/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "kernels/resize.h"

/* How an image becomes one of another shape: it is resized to `height` by `width`, of which then the rows
 * from `top` and the columns from `left` are kept, `crop_height` by `crop_width`. */
struct smalti_fit {
	int64_t height, width;
	int64_t top, left;
	int64_t crop_height, crop_width;
};

/* Sides of images, before and after, are 1 to this. */
enum { SMALTI_FIT_SIDE_MAX = INT32_MAX };

/* Resized straight to the shape, its proportions changed: what the reference's extraction does with bins
 * (docs/reference.md 6.4). */
struct smalti_fit smalti_fit_stretch(int64_t height, int64_t width);

/* An image of from_height by from_width resized in proportion until it covers the shape, what is too much
 * cut off evenly: what the reference's training does (docs/reference.md 6.6), and with a square its
 * extraction at one scale (6.4). EINVAL for a side that none has, or that becomes too long. */
int smalti_fit_cover(int64_t from_height, int64_t from_width, int64_t height, int64_t width,
		     struct smalti_fit *fit, struct smalti_error *error);

/* Resizes and crops an image as its rows pass by: only what a row of the result is made of is held, at the
 * result's width. Bits are those of the whole image resized by Pillow, then cropped. */
struct smalti_resizer;

/* Rows first … first + count − 1 of the image, [count, width, 3] of 8-bit RGB. Each call begins where the
 * last ended. */
typedef int smalti_resizer_source(void *user, int64_t first, int64_t count, uint8_t *rows,
				  struct smalti_error *error);

/* Of an image of height by width that `source` gives; reads nothing yet. EINVAL for a fit with sides that no
 * image has, or with a crop that lies not within them. */
struct smalti_resizer *smalti_resizer_open(int64_t height, int64_t width, const struct smalti_fit *fit,
					   enum smalti_filter filter, smalti_resizer_source *source,
					   void *user, struct smalti_error *error);

/* Rows first … first + count − 1 of the crop, [count, crop_width, 3]; each call begins where the last ended.
 * The source is read to the image's end with the last row, so that damage there shows, too. After a failure
 * only the close is left. */
int smalti_resizer_rows(struct smalti_resizer *resizer, int64_t first, int64_t count, uint8_t *rows,
			struct smalti_error *error);

void smalti_resizer_close(struct smalti_resizer *resizer); /* NULL is fine */
