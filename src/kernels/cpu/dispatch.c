/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of backward.h, norms.h, elementwise.h and measure.h on the CPU. */
#include "kernels/backward.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"
#include "kernels/measure.h"
#include "kernels/norms.h"

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

static const struct smalti_cpu_kernels *here(void)
{
	return smalti_cpu_kernels(smalti_isa());
}

void smalti_layernorm_modulate(int64_t rows, int64_t dim, const float *x, float epsilon, const float *shift,
			       const float *scale, enum smalti_dtype dtype, void *y)
{
	here()->layernorm_modulate(rows, dim, x, epsilon, shift, scale, dtype, y);
}

void smalti_rmsnorm(int64_t rows, int64_t dim, const float *x, float epsilon, const float *weight,
		    enum smalti_dtype dtype, void *y)
{
	here()->rmsnorm(rows, dim, x, epsilon, weight, dtype, y);
}

void smalti_groupnorm_moments(int64_t pixels, int64_t channels, int64_t groups, const float *x,
			      struct smalti_moments *moments)
{
	here()->groupnorm_moments(pixels, channels, groups, x, moments);
}

void smalti_groupnorm_apply(int64_t pixels, int64_t channels, const float *x, const float *a, const float *b,
			    bool silu, enum smalti_dtype dtype, void *y)
{
	here()->groupnorm_apply(pixels, channels, x, a, b, silu, dtype, y);
}

void smalti_silu(int64_t count, const float *x, enum smalti_dtype dtype, void *y)
{
	here()->silu(count, x, dtype, y);
}

void smalti_gelu(int64_t count, const float *x, enum smalti_dtype dtype, void *y)
{
	here()->gelu(count, x, dtype, y);
}

void smalti_gelu_backward(int64_t count, const float *x, float *gy)
{
	here()->gelu_backward(count, x, gy);
}

void smalti_silu_backward(int64_t count, const float *x, float *gy)
{
	here()->silu_backward(count, x, gy);
}

void smalti_gated_sum(int64_t rows, int64_t dim, const float *x, const float *gate, const float *z, float *y)
{
	here()->gated_sum(rows, dim, x, gate, z, y);
}

void smalti_gate_backward(int64_t rows, int64_t dim, const float *gy, const float *gate, const float *z,
			  float *gz, float *ggate)
{
	here()->gate_backward(rows, dim, gy, gate, z, gz, ggate);
}

void smalti_layernorm_modulate_backward(const struct smalti_layernorm_backward *layernorm, const float *x,
					const float *scale, const float *gy, float *gx, float *gshift,
					float *gscale)
{
	here()->layernorm_modulate_backward(layernorm, x, scale, gy, gx, gshift, gscale);
}

void smalti_column_sums(int64_t rows, int64_t dim, int64_t stride, const float *x, bool add, float *y)
{
	here()->column_sums(rows, dim, stride, x, add, y);
}

void smalti_convert(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype to, void *y)
{
	here()->convert(count, from, x, to, y);
}

void smalti_add(int64_t count, const float *x, const float *z, float *y)
{
	here()->add(count, x, z, y);
}

void smalti_to_u8(int64_t count, const float *x, uint8_t *y)
{
	here()->to_u8(count, x, y);
}

void smalti_to_u16(int64_t count, const float *x, uint16_t *y)
{
	here()->to_u16(count, x, y);
}

int64_t smalti_measure_fma(int64_t rounds, float *sum)
{
	return here()->measure_fma(rounds, sum);
}

float smalti_measure_read(int64_t count, const float *x)
{
	return here()->measure_read(count, x);
}

void smalti_measure_triad(int64_t count, const float *x, const float *y, float *z)
{
	here()->measure_triad(count, x, y, z);
}
