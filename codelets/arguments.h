/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "kernels/contrast.h"
#include "kernels/many.h"
#include "kernels/matches.h"
#include "kernels/matmul.h"
#include "kernels/optimizers.h"
#include "samplers/sampler.h"

/* Returns the bytes of a tensor [rows, columns]. */
static inline double smalti_bytes(enum smalti_dtype dtype, int64_t rows, int64_t columns)
{
	return (double)smalti_dtype_bytes(dtype) * (double)rows * (double)columns;
}

/* Move bytes to a place in a file, and back; with `last` they are not needed again. 0, or -1 with an error.
 * The token of a place shows that it was written. */
typedef int (*smalti_offload_writer)(void *user, int64_t offset, int64_t bytes, const void *data,
				     struct smalti_error *error);
typedef int (*smalti_offload_reader)(void *user, int64_t offset, int64_t bytes, bool last, void *data,
				     struct smalti_error *error);

/* Fills rows of an image in order: f32 [rows, width, 3] in [-1, 1], from row `first`; 0, or -1 with an
 * error. */
typedef int (*smalti_row_source)(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
				 struct smalti_error *error);

/* Takes finished rows of an image in order: f32 [rows, width, 3] in [-1, 1], from row `first`; 0, or -1 with
 * an error. Sources and sinks are valid only in this process. */
typedef int (*smalti_row_sink)(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			       struct smalti_error *error);

/* Hands `count` floats to this process; 0, or -1 with an error. Without a sink they only come here. */
typedef int (*smalti_float_sink)(void *user, int64_t count, const float *values, struct smalti_error *error);
/* Copies the floats to `user`, which has room for them. */
int smalti_copy_floats(void *user, int64_t count, const float *values, struct smalti_error *error);

/* struct NAME_arguments: plain values only. */
#include "codelets/argument_structs.h"

/* Formulas longer than a line of the table. */
double smalti_matmul_bytes(const struct matmul_arguments *a);
double smalti_matmul_raw_bytes(const struct matmul_raw_arguments *a);
double smalti_attention_flops(const struct attention_arguments *a);
double smalti_attention_bytes(const struct attention_arguments *a);
double smalti_attention_backward_bytes(const struct attention_backward_arguments *a);
double smalti_attend_heads_flops(const struct attend_heads_arguments *a);
double smalti_attend_heads_bytes(const struct attend_heads_arguments *a);
double smalti_sampler_flops(const struct sampler_step_arguments *a); /* with guidance */
double smalti_came_flops(const struct came_arguments *a);
double smalti_came_bytes(const struct came_arguments *a);
double smalti_conv_bytes(const struct conv_arguments *a);
double smalti_conv_result_bytes(const struct conv_arguments *a);

#define SMALTI_CONV_FLOPS(a)                                                                                 \
	(18.0 * ((a)->upsample ? 4.0 : 1.0) * ((a)->stride == 2 ? 0.25 : 1.0) * (double)(a)->rows *          \
	 (double)(a)->width * (double)(a)->in * (double)(a)->out)
