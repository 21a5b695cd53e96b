/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector.h"

/* Enough independent sums to hide the latency of two units; with two constants they fit 16 registers. */
enum { SUMS = 10, READ_SUMS = 4 };

int64_t FOR_ISA(smalti_measure_fma)(int64_t rounds, float *sum)
{
	vec sums[SUMS], scale = vec_set1(0.999f), step = vec_set1(0.001f);
	UNROLL
	for (int i = 0; i < SUMS; i++)
		sums[i] = vec_set1(*sum + (float)i);
	for (int64_t round = 0; round < rounds; round++) {
		UNROLL
		for (int i = 0; i < SUMS; i++)
			sums[i] = vec_fma(sums[i], scale, step);
	}
	UNROLL
	for (int i = 1; i < SUMS; i++)
		sums[0] += sums[i];
	*sum = vec_sum(sums[0]);
	return rounds * SUMS * LANES * 2;
}

float FOR_ISA(smalti_measure_read)(int64_t count, const float *x)
{
	vec sums[READ_SUMS] = {{0}};
	for (int64_t i = 0; i < count; i += READ_SUMS * LANES) {
		UNROLL
		for (int j = 0; j < READ_SUMS; j++)
			sums[j] += vec_load(x + i + j * LANES);
	}
	return vec_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void FOR_ISA(smalti_measure_triad)(int64_t count, const float *x, const float *y, float *z)
{
	vec half = vec_set1(0.5f);
	for (int64_t i = 0; i < count; i += LANES)
		vec_store(z + i, vec_fma(half, vec_load(y + i), vec_load(x + i)));
}
