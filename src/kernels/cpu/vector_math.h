/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/vector.h"

/* This constant, added and subtracted, rounds to an integer; the sum's last bits hold that integer. */
#define ROUNDER 0x1.8p23f

/* Returns 2^f for |f| <= 1/2; the relative error of the polynomial is 3e-9 (minimax with value 1 at 0). */
INLINE vec vec_exp2_fraction(vec f)
{
	vec p = vec_set1(0x1.470b4ap-13f);
	p = vec_fma(p, f, vec_set1(0x1.5f7276p-10f));
	p = vec_fma(p, f, vec_set1(0x1.3b270ep-7f));
	p = vec_fma(p, f, vec_set1(0x1.c6ae72p-5f));
	p = vec_fma(p, f, vec_set1(0x1.ebfbe2p-3f));
	p = vec_fma(p, f, vec_set1(0x1.62e432p-1f));
	return vec_fma(p, f, vec_set1(1.f));
}

/* Returns 2^x for x <= 126; 0 below -126, where subnormal results would make later arithmetic a hundred times
 * as slow. NaN stays NaN. Error below 2 units in the last place. */
INLINE vec vec_exp2(vec x)
{
#if defined(__AVX512F__)
	vec fraction = (vec)_mm512_reduce_ps((__m512)x, 0); /* from the nearest integer; 0 of infinity */
	const __mmask16 normal = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-126.f), _CMP_NLT_UQ);
	return (vec)_mm512_maskz_scalef_ps(normal, (__m512)vec_exp2_fraction(fraction),
					   (__m512)(x - fraction));
#else
	vec bounded = vec_max(vec_set1(-160.f), x);
	vec shifted = bounded + ROUNDER;
	vec power = vec_exp2_fraction(bounded - (shifted - ROUNDER));
	vec scaled = (vec)((uvec)power + ((uvec)shifted << 23));
	return vec_select(x >= -126.f, scaled, vec_select(x != x, x, (vec){0}));
#endif
}

/* Returns e^x over all of f32: overflows to infinity, underflows through the subnormals to 0. NaN stays NaN.
 * Error below 2 units in the last place of a normal result. */
INLINE vec vec_exp(vec x)
{
	vec bounded = vec_min(vec_set1(89.f), vec_max(vec_set1(-105.f), x));
	vec shifted = vec_fma(bounded, vec_set1(0x1.715476p0f), vec_set1(ROUNDER));
	vec whole = shifted - ROUNDER;
	/* ln 2 in two parts; whole × the first is exact. */
	vec rest =
	    vec_fma(whole, vec_set1(-0x1.7f7d1cp-20f), vec_fma(whole, vec_set1(-0x1.62e4p-1f), bounded));
	vec power = vec_exp2_fraction(rest * 0x1.715476p0f);
	/* 2^whole in two factors that are both normal numbers. */
	ivec exponent = (ivec)((uvec)shifted - (uvec)vec_set1(ROUNDER));
	ivec half = exponent >> 1;
	vec first = (vec)((uvec)(half + 127) << 23);
	vec second = (vec)((uvec)(exponent - half + 127) << 23);
	return power * first * second;
}

/* Returns x / (1 + e^-x). */
INLINE vec vec_silu(vec x)
{
	return x / (vec_exp(-x) + 1.f);
}

/* Returns gelu_tanh(z) = z / (1 + e^−2u), u = √(2/π)·(z + 0.044715 z³). */
INLINE vec vec_gelu(vec z)
{
	vec u = vec_fma(z * z * z, vec_set1(0.044715f), z);
	return z / (vec_exp(u * -1.5957691216f) + 1.f);
}
