/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Instruction sets that kernels are compiled for; each includes the ones before it. */
enum smalti_isa {
	SMALTI_ISA_GENERIC,
	SMALTI_ISA_AVX2,
	SMALTI_ISA_AVX512,
	SMALTI_ISA_AVX512_BF16, /* and dot products of bf16, and of bytes */
	SMALTI_ISA_AMX,         /* and tiles of bf16 and of bytes */
	SMALTI_ISAS
};

/* Returns the best set that this CPU and operating system run, up to the limit of the environment variable
 * SMALTI_MAX_ISA, one of the names below. Read once. avx512_bf16 is not chosen on Intel's CPUs, where it has
 * half the rate of f32, unless asked for. The first call requests AMX's registers for the whole process, and
 * holds oneDNN, whatever its own variables say, to the same limit (to AVX2 at least: its simpler code is too
 * slow). So it must precede any call of oneDNN. */
enum smalti_isa smalti_isa(void);

/* Fails if SMALTI_MAX_ISA holds a word that smalti_isa() had to ignore, or if oneDNN could no longer be
 * limited to it. */
int smalti_isa_check(struct smalti_error *error);

/* Returns "generic", "avx2", "avx512", "avx512_bf16" or "amx". */
const char *smalti_isa_name(enum smalti_isa isa);

/* Tells whether oneDNN multiplies bf16 faster than f32 here: with AMX, or with AVX-512 on AMD (Intel's runs
 * at half the rate of f32). Otherwise bf16 products are computed in f32 from rounded operands, which is
 * equivalent arithmetic. */
bool smalti_isa_bf16(void);

/* Lists the CPU's relevant features, whatever the limit: "avx2 fma avx512f avx512_bf16 amx_bf16 …"; empty if
 * nothing is known. */
const char *smalti_isa_features(void);
