/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/onednn_api.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

/* What matmul.c and conv.c share: the engine, each thread's primitives, and the packing of weights.
 * oneDNN's own threads are never used: the calling thread does the work. */

/* NULL with an error when oneDNN cannot be set up. The instruction set is limited before the first use. */
dnnl_engine_t smalti_onednn_engine(struct smalti_error *error);

/* Has OpenMP give oneDNN one thread, the calling one, to the end of the scope:
 *
 *	ALONE_IN_ONEDNN;
 *
 * How a weight is laid out follows from the number of threads when the product is described, and that number
 * is each thread's own: the threads that reserve, pack and multiply have to say the same. */
#define ALONE_IN_ONEDNN                                                                                      \
	SCOPED(smalti_onednn_leave) __attribute__((unused)) const int threads_before = smalti_onednn_enter()
int smalti_onednn_enter(void);
void smalti_onednn_leave_scoped(const int *threads_before);

/* The calling thread's stream; NULL with an error. */
dnnl_stream_t smalti_onednn_stream(struct smalti_error *error);

/* -1 with an error that says what oneDNN refused and why; 0 when status is success. */
int smalti_onednn_check(dnnl_status_t status, const char *what, struct smalti_error *error);

static inline dnnl_data_type_t smalti_onednn_type(enum smalti_dtype dtype)
{
	return dtype == SMALTI_F32 ? dnnl_f32 : dtype == SMALTI_BF16 ? dnnl_bf16 : dnnl_f16;
}

/* What it multiplies in place of operands of a dtype: these, where it is good at that, else f32. */
static inline enum smalti_dtype smalti_onednn_operands(enum smalti_dtype compute)
{
	return compute == SMALTI_BF16 && smalti_isa_bf16() ? SMALTI_BF16 : SMALTI_F32;
}

/* A primitive with these attributes adds to what it writes. */
dnnl_status_t smalti_onednn_add_to_result(dnnl_primitive_attr_t attributes);

/* What a primitive is made from; equal keys give equal primitives. Unused words are 0. */
struct smalti_onednn_key {
	int64_t word[10];
};

/* Makes the descriptor of a primitive from `context`, with `attributes` (whose scratchpad is the caller's).
 */
typedef int smalti_onednn_describe(const void *context, dnnl_engine_t engine,
				   dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *description,
				   struct smalti_error *error);

struct smalti_onednn_argument {
	int index; /* DNNL_ARG_… */
	const void *data;
};

enum { SMALTI_ONEDNN_ARGUMENTS = 6 };

/* Runs the calling thread's primitive of that key, made by `describe` where there is none yet. Every call
 * with the same key has the same argument indices in the same order. */
int smalti_onednn_run(const struct smalti_onednn_key *key, smalti_onednn_describe *describe,
		      const void *context, const struct smalti_onednn_argument *arguments, int count,
		      struct smalti_error *error);

/* Rows [first, first + extent) of the stacked parts become dimension `axis`, of that extent, of a tensor in
 * the layout `packed`; elements of a row are read with the strides `plain`, and rounded to `compute`. Nothing
 * is written where the layout needs more than `to` has. */
int smalti_onednn_pack(smalti_const_layout packed, int axis, const dnnl_dims_t plain,
		       enum smalti_dtype compute, const struct smalti_weight_part *parts, int64_t first,
		       struct smalti_packed to, struct smalti_error *error);
