/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Resizes an image in proportion until it covers another size, and cuts the excess off evenly, row by row, as
 * diffusers' resize_and_crop_tensor() does with an image of a bin's size. Bilinear without a filter (torch's
 * interpolate() with align_corners=False), on floats. */
struct smalti_interpolator;

/* Takes RGB, f32 [height, width, 3]. All sides are 1 or more. */
struct smalti_interpolator *smalti_interpolator_new(int64_t from_height, int64_t from_width, int64_t height,
						    int64_t width, struct smalti_error *error);
void smalti_interpolator_free(struct smalti_interpolator *interpolator); /* NULL is fine */

/* Takes row `row` of the result. */
typedef int smalti_interpolator_sink(void *user, int64_t row, const float *pixels,
				     struct smalti_error *error);

/* Takes the image's rows first … first + count − 1, which begin where the last call's ended, and hands over
 * the rows of the result that they complete. Returns the sink's first result that is not 0, else 0. */
int smalti_interpolator_rows(struct smalti_interpolator *interpolator, int64_t first, int64_t count,
			     const float *rows, smalti_interpolator_sink *sink, void *user,
			     struct smalti_error *error);
