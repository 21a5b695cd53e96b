/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"

extern const struct smalti_cpu_kernels FOR_ISA(smalti_cpu_kernels);

const struct smalti_cpu_kernels FOR_ISA(smalti_cpu_kernels) = {
    .attention_scratch = FOR_ISA(smalti_attention_scratch),
    .attention = FOR_ISA(smalti_attention),
    .layernorm_modulate = FOR_ISA(smalti_layernorm_modulate),
    .rmsnorm = FOR_ISA(smalti_rmsnorm),
    .groupnorm_moments = FOR_ISA(smalti_groupnorm_moments),
    .groupnorm_apply = FOR_ISA(smalti_groupnorm_apply),
    .silu = FOR_ISA(smalti_silu),
    .convert = FOR_ISA(smalti_convert),
    .add = FOR_ISA(smalti_add),
    .gate_add = FOR_ISA(smalti_gate_add),
    .multiply = FOR_ISA(smalti_multiply),
    .matmul_raw_scratch = FOR_ISA(smalti_matmul_raw_scratch),
    .matmul_raw = FOR_ISA(smalti_matmul_raw),
    .to_u8 = FOR_ISA(smalti_to_u8),
    .to_u16 = FOR_ISA(smalti_to_u16),
    .winograd_packed = FOR_ISA(smalti_winograd_packed),
    .winograd_pack = FOR_ISA(smalti_winograd_pack),
    .winograd_slab = FOR_ISA(smalti_winograd_slab),
    .winograd_scratch = FOR_ISA(smalti_winograd_scratch),
    .winograd = FOR_ISA(smalti_winograd),
    .measure_fma = FOR_ISA(smalti_measure_fma),
    .measure_read = FOR_ISA(smalti_measure_read),
    .measure_triad = FOR_ISA(smalti_measure_triad),
};
