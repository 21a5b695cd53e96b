/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_KERNELS_ISA_H
#define SMALTI_KERNELS_ISA_H

#include <stdbool.h>

/* Instruction sets that kernels are compiled for, each holding the ones before it. */
enum smalti_isa { SMALTI_ISA_GENERIC, SMALTI_ISA_AVX2, SMALTI_ISA_AVX512, SMALTI_ISAS };

/* The best that this CPU and operating system run, no better than the environment variable
 * SMALTI_MAX_ISA allows ("generic", "avx2", "avx512"; its effect reaches oneDNN, too). Read once. */
enum smalti_isa smalti_isa(void);
const char *smalti_isa_name(enum smalti_isa isa);

/* Whether oneDNN multiplies bf16 here (AVX-512 and not limited); else bf16 products are made in f32
 * from rounded operands, which is the same arithmetic. */
bool smalti_isa_bf16(void);

/* The CPU's own features relevant here, whatever the limit: "avx2 fma avx512f avx512_bf16 amx_bf16 …". */
const char *smalti_isa_features(void);

#endif
