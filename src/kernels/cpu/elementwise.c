/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"

void FOR_ISA(smalti_silu)(int64_t count, const float *x, enum smalti_dtype dtype, void *y)
{
	for (int64_t i = 0; i < count; i += LANES)
		vec_write(dtype, y, i, count - i, vec_silu(vec_read(SMALTI_F32, x, i, count - i)));
}

void FOR_ISA(smalti_gelu)(int64_t count, const float *x, enum smalti_dtype dtype, void *y)
{
	for (int64_t i = 0; i < count; i += LANES)
		vec_write(dtype, y, i, count - i, vec_gelu(vec_read(SMALTI_F32, x, i, count - i)));
}

void FOR_ISA(smalti_convert)(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype to,
			     void *y)
{
	for (int64_t i = 0; i < count; i += LANES)
		vec_write(to, y, i, count - i, vec_read(from, x, i, count - i));
}

void FOR_ISA(smalti_add)(int64_t count, const float *x, const float *z, float *y)
{
	for (int64_t i = 0; i < count; i += LANES) {
		vec sum = vec_read(SMALTI_F32, x, i, count - i) + vec_read(SMALTI_F32, z, i, count - i);
		vec_write(SMALTI_F32, y, i, count - i, sum);
	}
}

void FOR_ISA(smalti_add_scaled)(int64_t count, double scale, const float *x, double *y)
{
	for (int64_t i = 0; i < count; i++)
		y[i] += scale * (double)x[i];
}

void FOR_ISA(smalti_gate_add)(int64_t count, const float *gate, const float *z, float *y)
{
	for (int64_t i = 0; i < count; i += LANES) {
		int64_t left = count - i;
		vec sum = vec_fma(vec_read(SMALTI_F32, gate, i, left), vec_read(SMALTI_F32, z, i, left),
				  vec_read(SMALTI_F32, y, i, left));
		vec_write(SMALTI_F32, y, i, left, sum);
	}
}

void FOR_ISA(smalti_multiply)(int64_t count, const float *z, enum smalti_dtype dtype, const void *operand,
			      void *y)
{
	for (int64_t i = 0; i < count; i += LANES)
		vec_write(dtype, y, i, count - i,
			  vec_read(SMALTI_F32, z, i, count - i) * vec_read(dtype, operand, i, count - i));
}

/* Returns levels 0 … `max` of [-1, 1] by the operations of docs/reference.md 5.4, one by one and none fused,
 * so that all machines have equal bits. */
INLINE uvec levels(vec x, float max)
{
	vec value = x * 0.5f + 0.5f;
	value = vec_min(vec_max(value, vec_set1(0.f)), vec_set1(1.f)); /* NaN becomes 0 */
	return (uvec)(value * max + ROUNDER) & 0xffff;
}

void FOR_ISA(smalti_to_u8)(int64_t count, const float *x, uint8_t *y)
{
	for (int64_t i = 0; i < count; i += LANES) {
		uvec rounded = levels(vec_read(SMALTI_F32, x, i, count - i), 255.f);
		bvec bytes = __builtin_convertvector(rounded, bvec);
		memcpy(y + i, &bytes, (size_t)(count - i < LANES ? count - i : LANES));
	}
}

void FOR_ISA(smalti_to_u16)(int64_t count, const float *x, uint16_t *y)
{
	for (int64_t i = 0; i < count; i += LANES) {
		uvec rounded = levels(vec_read(SMALTI_F32, x, i, count - i), 65535.f);
		hvec halves = __builtin_convertvector(rounded, hvec);
		memcpy(y + i, &halves, (size_t)(count - i < LANES ? count - i : LANES) * sizeof(*y));
	}
}
