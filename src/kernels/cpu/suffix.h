/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/kernels.h"

/* FOR_ISA(name) is name_generic, name_avx2, name_avx512 and so on; the build defines SMALTI_CPU_ISA. */
#define FOR_ISA_JOIN(name, isa)   name##_##isa
#define FOR_ISA_EXPAND(name, isa) FOR_ISA_JOIN(name, isa)
#define FOR_ISA(name)             FOR_ISA_EXPAND(name, SMALTI_CPU_ISA)

/* Every function of struct smalti_cpu_kernels: smalti_NAME_ISA() has the type of its member NAME. */
/* clang-format off */
#define SMALTI_EACH_CPU_KERNEL(with) \
	with(attention_scratch) with(attention) with(layernorm_modulate) with(rmsnorm) \
	with(groupnorm_moments) with(groupnorm_apply) with(silu) with(convert) with(add) \
	with(gelu) with(gelu_backward) with(silu_backward) with(gated_sum) with(gate_backward) \
	with(layernorm_modulate_backward) with(column_sums) with(attention_weights) \
	with(adamw_rows) with(average_rows) with(square_row) with(came_squares) with(came_steps) \
	with(came_means) with(came_move) \
	with(gate_add) with(multiply) with(matmul_raw_scratch) with(matmul_raw) with(to_u8) \
	with(to_u16) with(winograd_packed) with(winograd_pack) with(winograd_slab) \
	with(winograd_scratch) with(winograd) with(measure_fma) with(measure_read) \
	with(measure_triad)
/* clang-format on */

#define SMALTI_DECLARE_CPU_KERNEL(name)                                                                      \
	__typeof__(*((const struct smalti_cpu_kernels *)0)->name) FOR_ISA(smalti_##name);
SMALTI_EACH_CPU_KERNEL(SMALTI_DECLARE_CPU_KERNEL)

/* The forms for bf16 operands, compiled where the instruction set multiplies bf16. */
__typeof__(FOR_ISA(smalti_attention_scratch)) FOR_ISA(smalti_attention_bf16_scratch);
__typeof__(FOR_ISA(smalti_attention)) FOR_ISA(smalti_attention_bf16);
__typeof__(FOR_ISA(smalti_matmul_raw_scratch)) FOR_ISA(smalti_matmul_raw_bf16_scratch);
__typeof__(FOR_ISA(smalti_matmul_raw)) FOR_ISA(smalti_matmul_raw_bf16);

/* Kernels that are compiled only there. */
#define SMALTI_EACH_BF16_KERNEL(with) with(dense_bf16_scratch) with(dense_bf16)
SMALTI_EACH_BF16_KERNEL(SMALTI_DECLARE_CPU_KERNEL)
