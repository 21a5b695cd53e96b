/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_KERNELS_ISA_H
#define SMALTI_KERNELS_ISA_H

#include "base/error.h"

#include <stdbool.h>

/* Instruction sets that kernels are compiled for, each holding the ones before it. */
enum smalti_isa { SMALTI_ISA_GENERIC, SMALTI_ISA_AVX2, SMALTI_ISA_AVX512, SMALTI_ISAS };

/* The best that this CPU and operating system run, no better than the environment variable
 * SMALTI_MAX_ISA allows ("generic", "avx2", "avx512"). Read once. Below avx512, oneDNN is held to AVX2
 * (it has no plainer code that is worth running) by the first call, which therefore has to come before
 * any call of oneDNN. */
enum smalti_isa smalti_isa(void);

/* Fails when SMALTI_MAX_ISA holds a word that smalti_isa() had to ignore, or when oneDNN could not be
 * held to it any more. */
int smalti_isa_check(struct smalti_error *error);

const char *smalti_isa_name(enum smalti_isa isa);

/* Whether oneDNN multiplies bf16 faster than f32 here: with AMX, or with AVX-512 on AMD (Intel's runs at
 * half the rate of f32). Else bf16 products are made in f32 from rounded operands, which is the same
 * arithmetic. */
bool smalti_isa_bf16(void);

/* The CPU's own features relevant here, whatever the limit: "avx2 fma avx512f avx512_bf16 amx_bf16 …";
 * empty where nothing is known. */
const char *smalti_isa_features(void);

#endif
