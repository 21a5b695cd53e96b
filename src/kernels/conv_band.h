/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"
#include "kernels/norms.h"

/* y = conv3×3(f(x)) + bias over a band of rows of a map, channels last; f is GroupNorm and SiLU when
 * `moments` is given, and nearest ×2 when `upsample`. */
struct smalti_conv_band {
	int64_t rows, width, in, out; /* rows, width, in: of x */
	int64_t groups, y_groups;
	int stride; /* 2: rows and width are even, y has half of them, and `above` is not looked at */
	float epsilon;
	bool upsample, residual; /* residual: added to y */
	enum smalti_dtype compute;
	const float *x, *above, *below;       /* the neighbours' rows; NULL: the image's border */
	const struct smalti_moments *moments; /* [groups]; NULL: f does not normalise */
	const float *gamma, *beta;
	const void *weight; /* as smalti_conv_pack() makes it */
	const float *bias;
	float *y, *top, *bottom;          /* top and bottom, or NULL: copies of y's first and last row */
	struct smalti_moments *y_moments; /* [y_groups], of y; or NULL */
};

int smalti_conv_band(const struct smalti_conv_band *band, struct smalti_error *error);

/* What a band's neighbours and its GroupNorm need of x [rows, width, channels]: its first and last row, its
 * moments; those that are not NULL. */
void smalti_band_edges(int64_t rows, int64_t width, int64_t channels, int64_t groups, const float *x,
		       float *top, float *bottom, struct smalti_moments *moments);
