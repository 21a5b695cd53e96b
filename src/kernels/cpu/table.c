/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"

#define COUNT(name) +1
_Static_assert((0 SMALTI_EACH_CPU_KERNEL(COUNT) SMALTI_EACH_BF16_KERNEL(COUNT)) * sizeof(void (*)(void)) ==
		   sizeof(struct smalti_cpu_kernels),
	       "suffix.h does not list every kernel");

extern const struct smalti_cpu_kernels FOR_ISA(smalti_cpu_kernels);

#define MEMBER(name) .name = FOR_ISA(smalti_##name),
const struct smalti_cpu_kernels FOR_ISA(smalti_cpu_kernels) = {SMALTI_EACH_CPU_KERNEL(MEMBER)
#if defined(__AVX512BF16__)
								   SMALTI_EACH_BF16_KERNEL(MEMBER)
#endif
};
