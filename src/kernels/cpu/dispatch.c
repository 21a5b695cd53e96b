/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

extern const struct smalti_cpu_kernels smalti_cpu_kernels_generic;
#if defined(__x86_64__)
extern const struct smalti_cpu_kernels smalti_cpu_kernels_avx2;
extern const struct smalti_cpu_kernels smalti_cpu_kernels_avx512;
extern const struct smalti_cpu_kernels smalti_cpu_kernels_avx512_bf16;
extern const struct smalti_cpu_kernels smalti_cpu_kernels_amx;
#endif

const struct smalti_cpu_kernels *smalti_cpu_kernels(enum smalti_isa isa)
{
	static const struct smalti_cpu_kernels *const tables[SMALTI_ISAS] = {
		[SMALTI_ISA_GENERIC] = &smalti_cpu_kernels_generic,
#if defined(__x86_64__)
		[SMALTI_ISA_AVX2] = &smalti_cpu_kernels_avx2,
		[SMALTI_ISA_AVX512] = &smalti_cpu_kernels_avx512,
		[SMALTI_ISA_AVX512_BF16] = &smalti_cpu_kernels_avx512_bf16,
		[SMALTI_ISA_AMX] = &smalti_cpu_kernels_amx,
#endif
	};
	return tables[isa];
}
