/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"

extern const struct smalti_cpu_kernels FOR_ISA(smalti_cpu_kernels);

const struct smalti_cpu_kernels FOR_ISA(smalti_cpu_kernels) = {
#define KERNEL(type, name, parameters) .name = FOR_ISA(smalti_##name),
#if !defined(__AVX512BF16__)
#define BF16_KERNEL(type, name, parameters)
#endif
#include "kernels/kernels.def"
};
