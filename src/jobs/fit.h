/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_FIT_H
#define SMALTI_JOBS_FIT_H

#include "base/error.h"

#include <stdint.h>

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

#endif
