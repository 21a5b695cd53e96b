/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* An image's planes [channels, height, width] and the patches of patch columns left … left + columns − 1:
 * token n covers the patch×patch pixels of patch row n / columns, and its columns run over (channel, row,
 * column) of the patch. */
struct smalti_patches {
	int64_t channels, height, width, patch;
	int64_t left, columns;
	int64_t first, rows; /* tokens first … first + rows − 1 */
	bool channels_last;  /* columns run over (row, column, channel) */
};

/* Computes tokens [rows, channels·patch²] = planes·scale. */
void smalti_patchify(const struct smalti_patches *patches, float scale, const float *planes, float *tokens);
/* Computes planes = tokens·scale; writes only the pixels of these tokens. */
void smalti_unpatchify(const struct smalti_patches *patches, float scale, const float *tokens, float *planes);

/* Reorders the DiT's output (row, column, channel of out_channels) to the token order above, and keeps the
 * first `channels` channels (docs/reference.md 3.7): y [rows, channels·patch²]. */
void smalti_reorder_output(const struct smalti_patches *patches, int64_t out_channels, const float *v,
			   float *y);

/* Computes rows first_row … of planes, times scale, channels last: y [rows·width, channels]. */
void smalti_planes_to_pixels(int64_t channels, int64_t height, int64_t width, int64_t first_row, int64_t rows,
			     float scale, const float *planes, float *y);

/* Computes rows first_row … of planes [2·channels, height, width] from x [rows·width, 2·channels]: means μ
 * and logarithms of variances v become μ and exp(clamp(v, −30, 20) / 2) (docs/reference.md 5.2). */
void smalti_posterior_to_planes(int64_t channels, int64_t height, int64_t width, int64_t first_row,
				int64_t rows, const float *x, float *planes);

/* Converts bytes to [-1, 1]: y = x / 127.5 − 1. */
void smalti_from_u8(int64_t count, const unsigned char *x, float *y);

/* Upsamples one row of pixels, nearest ×2: y [2·width, channels] from x [width, channels]. */
void smalti_upsample_row(int64_t width, int64_t channels, enum smalti_dtype dtype, const void *x, void *y);
