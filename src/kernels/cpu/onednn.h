/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/onednn_api.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

/* Common parts of matmul.c and conv.c: the engine, each thread's primitives, and the packing of weights.
 * oneDNN's own threads are never used: the calling thread does the work. */

/* Returns NULL with an error when oneDNN cannot be set up. Limits the instruction set before the first use.
 */
dnnl_engine_t smalti_onednn_engine(struct smalti_error *error);

/* Makes OpenMP give oneDNN one thread, the calling one, to the end of the scope:
 *
 *	ALONE_IN_ONEDNN;
 *
 * oneDNN lays a weight out by the number of threads when the product is described. Each thread has its own
 * number: the threads that reserve, pack and multiply must use the same. */
#define ALONE_IN_ONEDNN                                                                                      \
	SCOPED(smalti_onednn_leave) __attribute__((unused)) const int threads_before = smalti_onednn_enter()
int smalti_onednn_enter(void);
void smalti_onednn_leave_scoped(const int *threads_before);

/* Returns the calling thread's stream; NULL with an error. */
dnnl_stream_t smalti_onednn_stream(struct smalti_error *error);

/* Returns -1 with an error that says what oneDNN refused and why; 0 when status is success. */
int smalti_onednn_check(dnnl_status_t status, const char *what, struct smalti_error *error);

static inline dnnl_data_type_t smalti_onednn_type(enum smalti_dtype dtype)
{
	return dtype == SMALTI_F32 ? dnnl_f32 : dtype == SMALTI_BF16 ? dnnl_bf16 : dnnl_f16;
}

/* Returns the operands that oneDNN multiplies for a dtype: this dtype where it is fast at it, else f32. */
static inline enum smalti_dtype smalti_onednn_operands(enum smalti_dtype compute)
{
	return compute == SMALTI_BF16 && smalti_isa_bf16() ? SMALTI_BF16 : SMALTI_F32;
}

/* Makes a primitive with these attributes add to its result. */
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

/* Runs the calling thread's primitive of that key; `describe` makes it if there is none yet. All calls with
 * one key have the same argument indices in the same order. */
int smalti_onednn_run(const struct smalti_onednn_key *key, smalti_onednn_describe *describe,
		      const void *context, const struct smalti_onednn_argument *arguments, int count,
		      struct smalti_error *error);

/* Packs rows [first, first + extent) of the stacked parts into dimension `axis`, of that extent, of a tensor
 * in the layout `packed`; elements of a row are read with the strides `plain`, and rounded to `compute`.
 * Writes nothing where the layout needs more than `to` has. */
int smalti_onednn_pack(smalti_const_layout packed, int axis, const dnnl_dims_t plain,
		       enum smalti_dtype compute, const struct smalti_weight_part *parts, int64_t first,
		       struct smalti_packed to, struct smalti_error *error);
