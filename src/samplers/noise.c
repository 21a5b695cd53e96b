/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/noise.h"

#include <math.h>
#include <string.h>

enum { N = SMALTI_MT19937_WORDS, M = 397 };

void smalti_mt19937_seed(struct smalti_mt19937 *mt, uint32_t seed)
{
	mt->state[0] = seed;
	for (uint32_t j = 1; j < N; j++) {
		uint32_t last = mt->state[j - 1];
		mt->state[j] = UINT32_C(1812433253) * (last ^ (last >> 30)) + j;
	}
	mt->used = N;
}

static void twist(uint32_t *state)
{
	for (uint32_t k = 0; k < N; k++) {
		uint32_t after = state[(k + 1) % N];
		uint32_t y = (state[k] & UINT32_C(0x80000000)) | (after & UINT32_C(0x7fffffff));
		state[k] = state[(k + M) % N] ^ (y >> 1) ^ (after & 1 ? UINT32_C(0x9908b0df) : 0);
	}
}

uint32_t smalti_mt19937_next(struct smalti_mt19937 *mt)
{
	if (mt->used == N) {
		twist(mt->state);
		mt->used = 0;
	}
	uint32_t y = mt->state[mt->used++];
	y ^= y >> 11;
	y ^= (y << 7) & UINT32_C(0x9d2c5680);
	y ^= (y << 15) & UINT32_C(0xefc60000);
	return y ^ (y >> 18);
}

#define TWO_PI 6.283185307179586

enum { BLOCK = 16, HALF = BLOCK / 2 };

void smalti_generator_seed(struct smalti_generator *generator, uint64_t seed)
{
	memset(generator, 0, sizeof(*generator));
	smalti_mt19937_seed(&generator->mt, (uint32_t)seed);
}

/* Returns the logarithm of x in (0, 1]. These are the Cephes polynomials with fused multiply-adds, operation
 * by operation as in torch's vector code: libm's functions are more exact, so their last bits differ. */
static float cephes_log(float x)
{
	static const float p[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
				  -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
				  2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
	int exponent;
	float m = frexpf(x, &exponent);
	float f = m - 1.f;
	if (m < 0.70710678f) {
		exponent--;
		f += m;
	}
	float e = (float)exponent;
	float z = f * f;
	float y = p[0];
	for (int i = 1; i < 9; i++)
		y = fmaf(y, f, p[i]);
	y *= f;
	y = fmaf(y, z, e * -2.12194440e-4f);
	y -= 0.5f * z;
	return fmaf(e, 0.693359375f, f + y);
}

/* Does this for sine and cosine of an angle >= 0. */
static void cephes_sincos(float angle, float *sine, float *cosine)
{
	int octant = ((int)(angle * 1.27323954473516f) + 1) & ~1;
	float y = (float)octant;
	float x = fmaf(y, -0.78515625f, angle);
	x = fmaf(y, -2.4187564849853515625e-4f, x);
	x = fmaf(y, -3.77489497744594108e-8f, x);
	float z = x * x;
	float p = fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
	p = fmaf(p, z, 4.166664568298827e-2f) * z;
	float c = fmaf(p, z, -0.5f * z) + 1.f;
	float q = fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
	q = fmaf(q, z, -1.6666654611e-1f) * z;
	float s = fmaf(q, x, x);
	float sine_size = octant & 2 ? c : s;
	float cosine_size = octant & 2 ? s : c;
	*sine = octant & 4 ? -sine_size : sine_size;
	*cosine = (octant - 2) & 4 ? cosine_size : -cosine_size;
}

/* Makes a block of 16 uniform values normal, by Box-Muller; the partners of a pair are 8 apart. Adding the
 * mean of 0 turns a -0 into +0. */
static void transform_f32(float *block)
{
	for (int j = 0; j < HALF; j++) {
		float radius = sqrtf(-2.f * cephes_log(1.f - block[j]));
		float sine, cosine;
		cephes_sincos((float)TWO_PI * block[j + HALF], &sine, &cosine);
		block[j] = radius * cosine + 0.f;
		block[j + HALF] = radius * sine + 0.f;
	}
}

static float rounded(enum smalti_dtype dtype, double value)
{
	return smalti_round(dtype, (float)value);
}

/* Makes a block normal, with every intermediate rounded to the half type. */
static void transform_half(enum smalti_dtype dtype, float *block)
{
	for (int j = 0; j < HALF; j++) {
		float logarithm = rounded(dtype, log(1.0 - block[j]));
		float radius = rounded(dtype, sqrtf(-2.f * logarithm));
		float angle = rounded(dtype, TWO_PI * block[j + HALF]);
		block[j] = rounded(dtype, radius * rounded(dtype, cos(angle))) + 0.f;
		block[j + HALF] = rounded(dtype, radius * rounded(dtype, sin(angle))) + 0.f;
	}
}

static void transform(enum smalti_dtype dtype, float *block)
{
	if (dtype == SMALTI_F32)
		transform_f32(block);
	else
		transform_half(dtype, block);
}

/* Draws values in [0, 1) from the low bits of one word each, as many as the significand of `dtype` has. */
static void draw_uniform(struct smalti_generator *generator, enum smalti_dtype dtype, int64_t count,
			 float *out)
{
	static const int bits[] = {[SMALTI_F32] = 24, [SMALTI_F16] = 11, [SMALTI_BF16] = 8};
	uint32_t range = UINT32_C(1) << bits[dtype];
	for (int64_t k = 0; k < count; k++)
		out[k] = (float)(smalti_mt19937_next(&generator->mt) & (range - 1)) / (float)range;
}

void smalti_rand(struct smalti_generator *generator, int64_t count, float *out)
{
	draw_uniform(generator, SMALTI_F32, count, out);
}

static double draw_uniform_double(struct smalti_generator *generator)
{
	uint64_t high = smalti_mt19937_next(&generator->mt);
	uint64_t low = smalti_mt19937_next(&generator->mt);
	return (double)(((high << 32) | low) & ((UINT64_C(1) << 53) - 1)) * 0x1p-53;
}

static double draw_normal(struct smalti_generator *generator)
{
	if (generator->has_second) {
		generator->has_second = false;
		return generator->second;
	}
	double angle = TWO_PI * draw_uniform_double(generator);
	double radius = sqrt(-2.0 * log1p(-draw_uniform_double(generator)));
	generator->second = radius * sin(angle);
	generator->has_second = true;
	return radius * cos(angle);
}

static void draw_one_by_one(struct smalti_generator *generator, enum smalti_dtype dtype, int64_t count,
			    float *out)
{
	for (int64_t k = 0; k < count; k++) {
		double value = draw_normal(generator);
		out[k] = dtype == SMALTI_F32 ? (float)value : rounded(dtype, value);
	}
}

void smalti_randn(struct smalti_generator *generator, enum smalti_dtype dtype, int64_t count, float *out)
{
	if (count < BLOCK) {
		draw_one_by_one(generator, dtype, count, out);
		return;
	}
	draw_uniform(generator, dtype, count, out);
	for (int64_t i = 0; i + BLOCK <= count; i += BLOCK)
		transform(dtype, out + i);
	if (count % BLOCK != 0) {
		/* The last 16 are drawn anew, over finished values. */
		float *tail = out + (count - BLOCK);
		draw_uniform(generator, dtype, BLOCK, tail);
		transform(dtype, tail);
	}
}
