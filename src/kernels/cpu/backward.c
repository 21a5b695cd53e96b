/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backward.h"
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"

/* Returns the slope of f(z) = z·s(z): f′ = s·(1 + z·(1 − s)·inner), where s is the logistic function of a
 * term with the derivative `inner`. Where s is 0 or 1, so is f′, for any z. */
INLINE vec logistic_slope(vec z, vec s, vec inner)
{
	return s * vec_fma(z * (1.f - s), inner, vec_set1(1.f));
}

/* Bounds z, as z³ could overflow; beyond the bounds GELU's s is 0 or 1. NaN stays NaN. */
INLINE vec bounded(vec z)
{
	return vec_max(vec_set1(-32.f), vec_min(vec_set1(32.f), z));
}

/* Applies the slope of gelu(z) = z / (1 + e^−2u), 2u = 2·√(2/π)·(z + 0.044715 z³). */
void FOR_ISA(smalti_gelu_backward)(int64_t count, const float *x, float *gy)
{
	const float factor = 1.5957691216f;
	for (int64_t i = 0; i < count; i += LANES) {
		const int64_t left = count - i;
		const vec z = bounded(vec_read(SMALTI_F32, x, i, left)), square = z * z;
		const vec u = z * vec_fma(square, vec_set1(0.044715f), vec_set1(1.f));
		const vec inner = vec_fma(square, vec_set1(0.134145f), vec_set1(1.f)) * factor;
		const vec s = 1.f / (vec_exp(u * -factor) + 1.f);
		vec_write(SMALTI_F32, gy, i, left,
			  vec_read(SMALTI_F32, gy, i, left) * logistic_slope(z, s, inner));
	}
}

void FOR_ISA(smalti_silu_backward)(int64_t count, const float *x, float *gy)
{
	for (int64_t i = 0; i < count; i += LANES) {
		const int64_t left = count - i;
		const vec z = vec_read(SMALTI_F32, x, i, left);
		const vec s = 1.f / (vec_exp(-z) + 1.f);
		vec_write(SMALTI_F32, gy, i, left,
			  vec_read(SMALTI_F32, gy, i, left) * logistic_slope(z, s, vec_set1(1.f)));
	}
}

void FOR_ISA(smalti_gated_sum)(int64_t rows, int64_t dim, const float *x, const float *gate, const float *z,
			       float *y)
{
	for (; rows > 0; rows--, x += dim, y += dim, z += dim)
		for (int64_t i = 0; i < dim; i += LANES) {
			const int64_t left = dim - i;
			const vec factor = gate ? vec_read(SMALTI_F32, gate, i, left) : vec_set1(1.f);
			vec_write(SMALTI_F32, y, i, left,
				  vec_fma(factor, vec_read(SMALTI_F32, z, i, left),
					  vec_read(SMALTI_F32, x, i, left)));
		}
}

void FOR_ISA(smalti_gate_backward)(int64_t rows, int64_t dim, const float *gy, const float *gate,
				   const float *z, float *gz, float *ggate)
{
	for (; rows > 0; rows--, gy += dim, z += dim, gz += dim)
		for (int64_t i = 0; i < dim; i += LANES) {
			const int64_t left = dim - i;
			const vec given = vec_read(SMALTI_F32, gy, i, left);
			vec_write(SMALTI_F32, gz, i, left, given * vec_read(SMALTI_F32, gate, i, left));
			vec_write(SMALTI_F32, ggate, i, left,
				  vec_fma(given, vec_read(SMALTI_F32, z, i, left),
					  vec_read(SMALTI_F32, ggate, i, left)));
		}
}

void FOR_ISA(smalti_column_sums)(int64_t rows, int64_t dim, int64_t stride, const float *x, bool add,
				 float *y)
{
	if (!add)
		memset(y, 0, (size_t)dim * sizeof(*y));
	for (; rows > 0; rows--, x += stride)
		for (int64_t i = 0; i < dim; i += LANES)
			vec_write(SMALTI_F32, y, i, dim - i,
				  vec_read(SMALTI_F32, y, i, dim - i) + vec_read(SMALTI_F32, x, i, dim - i));
}

/* Replaces the scores by P = 2^(score·scale − lse), and P′ by P ⊙ (P′ − delta)·factor; their rows are keys.
 * Both are stored as the products read them. So rows of `queries` may become shorter: each is read before it
 * is overwritten. */
INLINE void weigh(const enum smalti_dtype stored, const enum smalti_dtype rounded,
		  const struct smalti_attention_weights *w, const float *lse, const float *delta,
		  void *scores, void *gradients)
{
	const float to_log2 = w->scale * 0x1.715476p0f;
	for (int64_t key = 0; key < w->keys; key++)
		for (int64_t i = 0; i < w->queries; i += LANES) {
			const int64_t left = w->queries - i, at = key * w->queries + i;
			const vec score = vec_read(SMALTI_F32, scores, at, left);
			const vec p =
			    vec_exp2(vec_fma(score, vec_set1(to_log2), -vec_read(SMALTI_F32, lse, i, left)));
			const vec g =
			    vec_read(SMALTI_F32, gradients, at, left) - vec_read(SMALTI_F32, delta, i, left);
			vec_write(stored, scores, at, left, vec_round(rounded, p));
			vec_write(stored, gradients, at, left, vec_round(rounded, p * g * w->scale));
		}
}

INLINE void weigh_f32(const enum smalti_dtype rounded, const struct smalti_attention_weights *w,
		      const float *lse, const float *delta, void *scores, void *gradients)
{
	weigh(SMALTI_F32, rounded, w, lse, delta, scores, gradients);
}

void FOR_ISA(smalti_attention_weights)(const struct smalti_attention_weights *weights, const float *lse,
				       const float *delta, void *scores, void *gradients)
{
	const enum smalti_dtype dtype = weights->dtype;
	if (weights->stored == SMALTI_BF16)
		weigh(SMALTI_BF16, SMALTI_F32, weights, lse, delta, scores, gradients);
	else
		FOR_DTYPE(dtype, weigh_f32, weights, lse, delta, scores, gradients);
}
