/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/kernels.h"

/* FOR_ISA(name) is name_generic, name_avx2, name_avx512 and so on; the build defines SMALTI_CPU_ISA. */
#define FOR_ISA_JOIN(name, isa)   name##_##isa
#define FOR_ISA_EXPAND(name, isa) FOR_ISA_JOIN(name, isa)
#define FOR_ISA(name)             FOR_ISA_EXPAND(name, SMALTI_CPU_ISA)

#define KERNEL(type, name, parameters) type FOR_ISA(smalti_##name) parameters;
#include "kernels/kernels.def"

/* The forms for bf16 operands, compiled where the instruction set multiplies bf16. */
__typeof__(FOR_ISA(smalti_attention_scratch)) FOR_ISA(smalti_attention_bf16_scratch);
__typeof__(FOR_ISA(smalti_attention)) FOR_ISA(smalti_attention_bf16);
__typeof__(FOR_ISA(smalti_matmul_raw_scratch)) FOR_ISA(smalti_matmul_raw_bf16_scratch);
__typeof__(FOR_ISA(smalti_matmul_raw)) FOR_ISA(smalti_matmul_raw_bf16);
