/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/kernels.h"

/* FOR_ISA(name) is name_generic, name_avx2, name_avx512 …: SMALTI_CPU_ISA comes from the build. */
#define FOR_ISA_JOIN(name, isa)   name##_##isa
#define FOR_ISA_EXPAND(name, isa) FOR_ISA_JOIN(name, isa)
#define FOR_ISA(name)             FOR_ISA_EXPAND(name, SMALTI_CPU_ISA)

int64_t FOR_ISA(smalti_attention_scratch)(const struct smalti_attention *attention);
void FOR_ISA(smalti_attention)(const struct smalti_attention *attention, const void *q,
			       const struct smalti_keys *blocks, float *state, void *y, float *scratch);
/* The same where all is bf16; compiled where the instruction set multiplies bf16. */
int64_t FOR_ISA(smalti_attention_bf16_scratch)(const struct smalti_attention *attention);
void FOR_ISA(smalti_attention_bf16)(const struct smalti_attention *attention, const void *q,
				    const struct smalti_keys *blocks, float *state, void *y, float *scratch);
void FOR_ISA(smalti_layernorm_modulate)(int64_t rows, int64_t dim, const float *x, float epsilon,
					const float *shift, const float *scale, enum smalti_dtype dtype,
					void *y);
void FOR_ISA(smalti_rmsnorm)(int64_t rows, int64_t dim, const float *x, float epsilon, const float *weight,
			     enum smalti_dtype dtype, void *y);
void FOR_ISA(smalti_groupnorm_moments)(int64_t pixels, int64_t channels, int64_t groups, const float *x,
				       struct smalti_moments *moments);
void FOR_ISA(smalti_groupnorm_apply)(int64_t pixels, int64_t channels, const float *x, const float *a,
				     const float *b, bool silu, enum smalti_dtype dtype, void *y);
void FOR_ISA(smalti_silu)(int64_t count, const float *x, enum smalti_dtype dtype, void *y);
void FOR_ISA(smalti_convert)(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype to,
			     void *y);
void FOR_ISA(smalti_add)(int64_t count, const float *x, const float *z, float *y);
void FOR_ISA(smalti_gate_add)(int64_t count, const float *gate, const float *z, float *y);
void FOR_ISA(smalti_multiply)(int64_t count, const float *z, enum smalti_dtype dtype, const void *operand,
			      void *y);
int64_t FOR_ISA(smalti_matmul_raw_scratch)(const struct smalti_matmul *matmul,
					   const struct smalti_raw_columns *x, int parts);
void FOR_ISA(smalti_matmul_raw)(const struct smalti_matmul *matmul, const struct smalti_raw_columns *x,
				int parts, const struct smalti_raw_weight *weight, const float *bias,
				const void *operand, int64_t y_stride, void *y, float *scratch);
/* The same where operands are bf16; compiled where the instruction set multiplies bf16. */
int64_t FOR_ISA(smalti_matmul_raw_bf16_scratch)(const struct smalti_matmul *matmul,
						const struct smalti_raw_columns *x, int parts);
void FOR_ISA(smalti_matmul_raw_bf16)(const struct smalti_matmul *matmul, const struct smalti_raw_columns *x,
				     int parts, const struct smalti_raw_weight *weight, const float *bias,
				     const void *operand, int64_t y_stride, void *y, float *scratch);
void FOR_ISA(smalti_to_u8)(int64_t count, const float *x, uint8_t *y);
void FOR_ISA(smalti_to_u16)(int64_t count, const float *x, uint16_t *y);
int64_t FOR_ISA(smalti_winograd_packed)(int64_t in, int64_t out);
void FOR_ISA(smalti_winograd_pack)(const struct smalti_conv *conv, const void *weight,
				   enum smalti_dtype dtype, float *packed);
int64_t FOR_ISA(smalti_winograd_slab)(const struct smalti_conv *conv);
int64_t FOR_ISA(smalti_winograd_scratch)(const struct smalti_conv *conv);
void FOR_ISA(smalti_winograd)(const struct smalti_conv *conv, const void *x, const float *packed,
			      const float *bias, float *y, float *scratch);
int64_t FOR_ISA(smalti_measure_fma)(int64_t rounds, float *sum);
float FOR_ISA(smalti_measure_read)(int64_t count, const float *x);
void FOR_ISA(smalti_measure_triad)(int64_t count, const float *x, const float *y, float *z);
