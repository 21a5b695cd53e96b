/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/attention.h"
#include "kernels/backward.h"
#include "kernels/conv.h"
#include "kernels/cpu/update_rows.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"
#include "kernels/norms.h"

/* How scores [keys, queries] and the gradients of their softmax, f32, become the weights and the scores'
 * gradients, rounded to `dtype`, stored as `stored`. `lse` as of struct smalti_attention; `delta` [queries]
 * is the sum of weights times their gradients. */
struct smalti_attention_weights {
	int64_t keys, queries;
	enum smalti_dtype dtype, stored;
	float scale;
};

/* The kernels that are compiled once per instruction set. attention.c, backward.c, norms.c, elementwise.c,
 * winograd*.c and measure.c of this directory use vectors of no fixed width (vector.h). The build compiles
 * them with the flags of each set and with SMALTI_CPU_ISA naming it, and table.c gathers the results. The
 * public functions of attention.h, norms.h and elementwise.h (dispatch.c) call through this machine's table.
 * Arguments are those of the public function of the same name. */
struct smalti_cpu_kernels {
	/* Floats of working memory for attention(). */
	int64_t (*attention_scratch)(const struct smalti_attention *attention);
	void (*attention)(const struct smalti_attention *attention, const void *q,
			  const struct smalti_keys *blocks, float *state, void *y, float *scratch);
	void (*layernorm_modulate)(int64_t rows, int64_t dim, const float *x, float epsilon,
				   const float *shift, const float *scale, enum smalti_dtype dtype, void *y);
	void (*rmsnorm)(int64_t rows, int64_t dim, const float *x, float epsilon, const float *weight,
			enum smalti_dtype dtype, void *y);
	void (*groupnorm_moments)(int64_t pixels, int64_t channels, int64_t groups, const float *x,
				  struct smalti_moments *moments);
	void (*groupnorm_apply)(int64_t pixels, int64_t channels, const float *x, const float *a,
				const float *b, bool silu, enum smalti_dtype dtype, void *y);
	void (*silu)(int64_t count, const float *x, enum smalti_dtype dtype, void *y);
	void (*convert)(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype to, void *y);
	void (*add)(int64_t count, const float *x, const float *z, float *y);
	void (*gelu)(int64_t count, const float *x, enum smalti_dtype dtype, void *y);
	void (*gelu_backward)(int64_t count, const float *x, float *gy);
	void (*silu_backward)(int64_t count, const float *x, float *gy);
	void (*gated_sum)(int64_t rows, int64_t dim, const float *x, const float *gate, const float *z,
			  float *y);
	void (*gate_backward)(int64_t rows, int64_t dim, const float *gy, const float *gate, const float *z,
			      float *gz, float *ggate);
	void (*layernorm_modulate_backward)(const struct smalti_layernorm_backward *layernorm, const float *x,
					    const float *scale, const float *gy, float *gx, float *gshift,
					    float *gscale);
	void (*column_sums)(int64_t rows, int64_t dim, int64_t stride, const float *x, bool add, float *y);
	/* For attention_backward.c. */
	void (*attention_weights)(const struct smalti_attention_weights *weights, const float *lse,
				  const float *delta, void *scores, void *gradients);
	/* For optimizers.c; a step of CAME is factor·gradient·columns. */
	void (*adamw_rows)(const struct smalti_adamw_factors *factors, int64_t count, const float *gradient,
			   float *value, float *mean, float *square);
	void (*average_rows)(int64_t count, float part, const float *value, float *average);
	double (*square_row)(int64_t count, const float *x);
	/* Returns Σ of squares of factor·gradient, and adds each square to its column's sum. */
	double (*came_squares)(int64_t count, float factor, const float *gradient, double *sums);
	double (*came_steps)(int64_t count, float factor, const float *gradient, const float *columns);
	/* Updates the mean by the step; then likewise, of the step minus the mean. */
	double (*came_means)(int64_t count, float factor, float beta, const float *gradient,
			     const float *columns, float *mean, double *sums);
	/* value = decay·value − factor·mean·columns */
	void (*came_move)(int64_t count, float decay, float factor, const float *mean, const float *columns,
			  float *value);
	/* For matmul.c: y += gate ⊙ z; y = z ⊙ operand, both of `dtype`. */
	void (*gate_add)(int64_t count, const float *gate, const float *z, float *y);
	void (*multiply)(int64_t count, const float *z, enum smalti_dtype dtype, const void *operand,
			 void *y);
	/* Floats of working memory for matmul_raw(). */
	int64_t (*matmul_raw_scratch)(const struct smalti_matmul *matmul, const struct smalti_raw_columns *x,
				      int parts);
	void (*matmul_raw)(const struct smalti_matmul *matmul, const struct smalti_raw_columns *x, int parts,
			   const struct smalti_raw_weight *weight, const float *bias, const void *operand,
			   int64_t y_stride, void *y, float *scratch);
	/* smalti_dense() of operands that are rounded to bf16, and floats of working memory that it needs;
	 * NULL where the instruction set has no such products. */
	int64_t (*dense_bf16_scratch)(const struct smalti_dense *dense);
	void (*dense_bf16)(const struct smalti_dense *dense, const void *a, const void *b, void *y,
			   float *scratch);
	void (*to_u8)(int64_t count, const float *x, uint8_t *y);
	void (*to_u16)(int64_t count, const float *x, uint16_t *y);
	/* For conv.c: floats of the packed form and of working memory; the stride is 1. x and the weights
	 * are of the products' dtype, their transforms and sums are f32. */
	int64_t (*winograd_packed)(int64_t in, int64_t out);
	void (*winograd_pack)(const struct smalti_conv *conv, const void *weight, enum smalti_dtype dtype,
			      float *packed);
	int64_t (*winograd_slab)(const struct smalti_conv *conv);
	int64_t (*winograd_scratch)(const struct smalti_conv *conv);
	void (*winograd)(const struct smalti_conv *conv, const void *x, const float *packed,
			 const float *bias, float *y, float *scratch);
	int64_t (*measure_fma)(int64_t rounds, float *sum);
	float (*measure_read)(int64_t count, const float *x);
	void (*measure_triad)(int64_t count, const float *x, const float *y, float *z);
};

/* Checks that y can have the wanted dtype: for matmul.c and matmul_raw.c. */
int smalti_matmul_check_result(const struct smalti_matmul *matmul, struct smalti_error *error);

/* Returns the kernels of one instruction set, whether or not this machine has it; NULL: not compiled. */
const struct smalti_cpu_kernels *smalti_cpu_kernels(enum smalti_isa isa);
