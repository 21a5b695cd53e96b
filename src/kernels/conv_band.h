/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"
#include "kernels/groupnorm.h"

/* y = conv3×3(f(x)) + bias over a band of rows of a map, channels last; f is GroupNorm and SiLU with
 * `moments`, and nearest ×2 with `upsample`. */
struct smalti_conv_band {
	int64_t rows, width, in, out; /* rows, width, in: x's */
	int64_t groups, y_groups;
	int stride; /* 2: rows and width are even, y has half of them, and `above` is ignored */
	float epsilon;
	bool upsample, residual; /* residual: added to y */
	enum smalti_dtype compute;
	const float *x, *above, *below;       /* the neighbours' rows; NULL: the image's border */
	const struct smalti_moments *moments; /* [groups]; NULL: f does not normalise */
	const float *gamma, *beta;
	const void *weight; /* packed by smalti_conv_pack() */
	const float *bias;
	float *y, *top, *bottom;          /* top and bottom: copies of y's first and last row, or NULL */
	struct smalti_moments *y_moments; /* [y_groups], y's; or NULL */
};

int smalti_conv_band(const struct smalti_conv_band *band, struct smalti_error *error);

/* Writes what a band's neighbours and its GroupNorm need of x [rows, width, channels]: its first and last
 * row, and its moments, each if not NULL. */
void smalti_band_edges(int64_t rows, int64_t width, int64_t channels, int64_t groups, const float *x,
		       float *top, float *bottom, struct smalti_moments *moments);

/* Upsamples one row of pixels, nearest ×2: y [2·width, channels] from x [width, channels]. */
void smalti_upsample_row(int64_t width, int64_t channels, enum smalti_dtype dtype, const void *x, void *y);
