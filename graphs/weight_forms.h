/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "graphs/merge.h"
#include "rt/tile_forms.h"

enum { SMALTI_WEIGHT_PARTS = 3 };

/* The forms that kernels read, made of tensors in a file:
 *
 *   vector     the parts end to end, as f32; a bias, whose products have another `compute` than f32, has a
 *              second part on devices (kernels/bias_form.h)
 *   matrix     [out, in], the parts stacked along `out`, in `compute`
 *   kernel     a convolution [out, in, 3, 3], in `compute`
 *   table      rows as f32, of a tensor that is coded in the file, or that adapters change
 *   rows8      [out, in], the parts stacked along `out`, as 8-bit rows of dtype `rows8`, everywhere
 *
 * A CPU has matrices and kernels packed (kernels/matmul.h, conv.h), a device has them plain; its kernels are
 * [out, 3, 3, in]. */
enum smalti_weight_kind {
	SMALTI_WEIGHT_VECTOR,
	SMALTI_WEIGHT_MATRIX,
	SMALTI_WEIGHT_KERNEL,
	SMALTI_WEIGHT_TABLE,
	SMALTI_WEIGHT_ROWS8
};

struct smalti_weight_source {
	enum smalti_weight_kind kind;
	enum smalti_dtype compute;
	enum smalti_dtype rows8;
	int64_t in, out; /* of a matrix or kernel */
	int stride;      /* of a kernel */
	/* Of a slice of columns: elements from one row to the next in the file, and its first column; else 0.
	 */
	int64_t row, first_in;
	int64_t first_out; /* of a slice of rows: where it begins in each part; else 0 */
	int parts;
	struct smalti_tensor_view part[SMALTI_WEIGHT_PARTS];
	struct smalti_merge *merge[SMALTI_WEIGHT_PARTS]; /* of parts that adapters change; else NULL */
};

/* Describes the forms of a source, which outlives them; -1 with an error when it has none. */
int smalti_weight_forms(const struct smalti_weight_source *source, struct smalti_tile_forms *forms,
			struct smalti_error *error);
