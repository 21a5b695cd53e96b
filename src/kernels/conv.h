/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"
#include "kernels/packed.h"

/* A 3×3 convolution of a band of rows, channels last.
 *
 * stride 1: x is [rows + 2, width, in]: the band with one row above and one below it (the
 *   neighbour's, or zeros at the image's border); columns are padded with zeros here;
 *   y is [rows, width, out].
 * stride 2: x is [2·rows + 1, width, in] with the one row below; zero column on the right only
 *   (docs/reference.md 5.1, Downsample); y is [rows, width / 2, out]; width is even.
 *
 * `residual`: y = y + conv(x) + bias, else y = conv(x) + bias. y and bias are f32; x has dtype `compute`. */
struct smalti_conv {
	int64_t rows, width, in, out;
	int stride;
	enum smalti_dtype compute;
	bool residual;
};

/* Returns the bytes of the packed form of W [out, in, 3, 3]; -1 with an error. They depend on neither rows
 * nor width. */
int64_t smalti_conv_packed_bytes(int64_t in, int64_t out, int stride, enum smalti_dtype compute,
				 struct smalti_error *error);

/* Converts and packs a checkpoint tensor [out, in, 3, 3] of any dtype and alignment. Fails if `packed` has
 * fewer bytes than the form needs. */
int smalti_conv_pack(int64_t in, int64_t out, int stride, enum smalti_dtype compute, const void *weight,
		     enum smalti_dtype dtype, struct smalti_packed packed, struct smalti_error *error);

/* Returns how many of conv->rows rows are best computed at a time; it depends only on `conv`'s shape. */
int64_t smalti_conv_slab(const struct smalti_conv *conv);

/* Returns the bytes of scratch that smalti_conv() takes for such rows, without the library's own. */
int64_t smalti_conv_scratch(const struct smalti_conv *conv);

int smalti_conv(const struct smalti_conv *conv, const void *x, const void *packed, const float *bias,
		float *y, struct smalti_error *error);
