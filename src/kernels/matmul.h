/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"
#include "base/rows8.h"
#include "kernels/epilogue.h"
#include "kernels/packed.h"

/* y[rows, out] = epilogue(x[rows, in] · Wᵀ + bias), row-major and contiguous; W is [out, in] as in
 * checkpoints. Products are of `compute` values, sums are f32. */

/* Tells whether the epilogue adds to y. */
static inline bool smalti_epilogue_adds(enum smalti_epilogue epilogue)
{
	return epilogue == SMALTI_EPILOGUE_ADD || epilogue == SMALTI_EPILOGUE_GATE_ADD;
}

struct smalti_matmul {
	int64_t rows, in, out;
	enum smalti_dtype compute; /* dtype of x, and of the products */
	enum smalti_dtype result;  /* dtype of y: f32 if the epilogue adds to it */
	enum smalti_epilogue epilogue;
};

/* One checkpoint tensor [rows, in] of any dtype (any alignment), to be stacked with others along `out`. */
struct smalti_weight_part {
	const void *data;
	enum smalti_dtype dtype;
	int64_t rows;
};

/* Returns the bytes of the packed form of W [out, in]; -1 with an error. The packed form is the library's
 * blocked layout for this CPU; it does not depend on `rows`. */
int64_t smalti_matmul_packed_bytes(int64_t in, int64_t out, enum smalti_dtype compute,
				   struct smalti_error *error);

/* Stacks the parts along `out`, converts (nearest even) and packs them. Fails if `packed` has fewer bytes
 * than the form needs. */
int smalti_matmul_pack(int64_t in, int64_t out, enum smalti_dtype compute,
		       const struct smalti_weight_part *parts, int part_count, struct smalti_packed packed,
		       struct smalti_error *error);

/* Checks that y can have the wanted dtype. */
int smalti_matmul_check_result(const struct smalti_matmul *matmul, struct smalti_error *error);

/* Multiplies. `bias` f32 [out] or NULL; `operand` as the epilogue says, else NULL. Any thread; it uses only
 * that one. */
int smalti_matmul(const struct smalti_matmul *matmul, const void *x, const void *packed, const float *bias,
		  const void *operand, void *y, struct smalti_error *error);

/* W [out, in] as in a checkpoint: any dtype, any alignment; an output's weights are `stride` elements apart,
 * so that a range of columns can be taken. Of 8-bit rows (base/rows8.h) that is smalti_rows8_stride(in),
 * and all columns are taken: their codes are multiplied, and the sums by the scale. */
struct smalti_raw_weight {
	const void *data;
	enum smalti_dtype dtype;
	int64_t stride;
};

/* Returns the elements from a row of [*, in] to the next. */
static inline int64_t smalti_raw_stride(enum smalti_dtype dtype, int64_t in)
{
	return smalti_is_rows8(dtype) ? smalti_rows8_stride(in) : in;
}

/* Columns of x, with rows `stride` elements apart: x consists of such matrices side by side. */
struct smalti_raw_columns {
	const void *data; /* dtype `compute`, aligned to it */
	int64_t count, stride;
};

/* The most inputs that smalti_matmul_raw() sums in one f32 run: longer runs round more. smalti_raw_depth()
 * gives the runs' length, for the `in` columns of the widest part of x; a part's last run may be shorter. A
 * run adds one product after the other, rounded once with each where the instruction set can (AVX2 and
 * later); then the runs' sums are added one after the other. */
enum { SMALTI_RAW_DEPTH = 128 };
static inline int64_t smalti_raw_depth(int64_t in)
{
	const int64_t pieces = (in + SMALTI_RAW_DEPTH - 1) / SMALTI_RAW_DEPTH;
	return smalti_round_up((in + pieces - 1) / pieces, 32);
}

/* Multiplies by weights that are not packed, as they are used too rarely for packing to pay. x consists of
 * `parts` matrices that have `in` columns together. Rows of y and of MULTIPLY's operand are `y_stride`
 * elements apart; elements between them are not touched. Weights are rounded to `compute`. The bits of a row
 * depend on how its columns are divided into parts, not on the other rows or outputs. */
int smalti_matmul_raw(const struct smalti_matmul *matmul, const struct smalti_raw_columns *x, int parts,
		      const struct smalti_raw_weight *weight, const float *bias, const void *operand,
		      int64_t y_stride, void *y, struct smalti_error *error);
