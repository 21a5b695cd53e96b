/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The two passes that resize 8-bit RGB as Pillow's Image.resize() does, to the bit (docs/reference.md 7.4):
 * first along rows, then across them, each rounding to 8 bits. A pass that keeps its extent changes nothing.
 *
 * Pillow 13 runs the passes in the other order for images that become much shorter, so that some values
 * differ by rounding; the reference has those of earlier versions. */

enum smalti_filter { SMALTI_FILTER_BILINEAR, SMALTI_FILTER_BICUBIC, SMALTI_FILTER_LANCZOS };

/* The weights of one sample of the result: samples first … first + count − 1 of the axis, each with its
 * weight in units of 2^-22. The absolute weights of a sample add up to less than 2. */
struct smalti_taps {
	int64_t first, count;
	int32_t *weights; /* the caller's */
};

/* Returns the most taps of any sample, 1 or more. Extents are 1 … 2^31 − 1 here and below. */
int64_t smalti_taps_max(enum smalti_filter filter, int64_t in, int64_t out);

/* Computes the taps of sample `at` of `out`, for an axis of `in` that is resized to `out`; weights has room
 * for the most of them. Neither first nor first + count ever decreases from one sample to the next. */
void smalti_taps_make(enum smalti_filter filter, int64_t in, int64_t out, int64_t at,
		      struct smalti_taps *taps);

/* Computes y [width, 3] from one row x [·, 3]: pixel i by taps[i]. */
void smalti_resize_along(int64_t width, const struct smalti_taps *taps, const uint8_t *x, uint8_t *y);

/* Computes y [width, 3] from the rows [width, 3] of the taps: rows[0] is that of taps->first. */
void smalti_resize_across(int64_t width, const struct smalti_taps *taps, const uint8_t *const *rows,
			  uint8_t *y);
