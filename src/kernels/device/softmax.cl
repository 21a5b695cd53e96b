/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention by products has between them and behind. See struct soften_arguments. */

/* Eight scores from a column on, in units of ln 2; -inf beyond the keys. */
DEVICE void load_scores(GLOBAL const float *scores, int64_t row, uint i, const struct soften_arguments *a,
			float values[8])
{
	load_eight(scores, SMALTI_F32, row * (a->stride / 8) + i, values);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] = 8 * (int64_t)i + j < a->keys ? values[j] * (a->scale * LOG2E) : -INFINITY;
}

/* A group has a row. */
DEVICE void soften_row(enum smalti_dtype dtype, GLOBAL const float *scores, GLOBAL void *weights,
		       GLOBAL float *sums, const struct soften_arguments *a, LOCAL float *room,
		       LOCAL float *more)
{
	const uint eights = (uint)(a->stride / 8);
	float values[8], largest = -INFINITY, sum = 0;
	for (uint i = (uint)THREAD; i < eights; i += (uint)THREADS) {
		load_scores(scores, GROUP, i, a, values);
		UNROLL
		for (int j = 0; j < 8; j++)
			largest = fmax(largest, values[j]);
	}
	largest = most_once(largest, room);
	const float origin = largest == -INFINITY ? 0 : largest; /* as in soften() */
	for (uint i = (uint)THREAD; i < eights; i += (uint)THREADS) {
		load_scores(scores, GROUP, i, a, values);
		UNROLL
		for (int j = 0; j < 8; j++) {
			values[j] = exp2(values[j] - origin);
			sum += values[j];
		}
		store_eight(weights, dtype, GROUP * eights + i, values);
	}
	sum = sum_once(sum, more);
	if (THREAD == 0)
		sums[GROUP] = sum;
}

/* y = z / sum of the row, in eights, of which a thread has one; 0 where no key has a weight. */
DEVICE void divide_eight(enum smalti_dtype dtype, GLOBAL const float *z, GLOBAL const float *sums,
			 GLOBAL void *y, const struct divide_rows_arguments *a)
{
	const uint eights = (uint)(a->columns / 8), i = (uint)INDEX;
	float values[8];
	if (INDEX >= a->rows * eights)
		return;
	const float sum = sums[i / eights], factor = sum != 0 ? 1.f / sum : 0;
	load_eight(z, SMALTI_F32, i, values);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] = sum != 0 ? values[j] * factor : 0;
	store_eight(y, dtype, a->first / 8 + i, values);
}

#define SOFTEN(dtype)                                                                                        \
	(GLOBAL const float *scores, GLOBAL void *weights, GLOBAL float *sums, struct soften_arguments a)    \
	{                                                                                                    \
		LOCAL_ARRAY(float, room, SUM_ROOM(SMALTI_DEVICE_THREADS));                                   \
		LOCAL_ARRAY(float, more, SUM_ROOM(SMALTI_DEVICE_THREADS));                                   \
		soften_row(dtype, scores, weights, sums, &a, room, more);                                    \
	}
KERNEL(soften_f32) SOFTEN(SMALTI_F32)
KERNEL(soften_f16) SOFTEN(SMALTI_F16)
KERNEL(soften_bf16) SOFTEN(SMALTI_BF16)

#define DIVIDE_ROWS(dtype)                                                                                   \
	(GLOBAL const float *z, GLOBAL const float *sums, GLOBAL void *y, struct divide_rows_arguments a)    \
	{                                                                                                    \
		divide_eight(dtype, z, sums, y, &a);                                                         \
	}
KERNEL(divide_rows_f32) DIVIDE_ROWS(SMALTI_F32)
KERNEL(divide_rows_f16) DIVIDE_ROWS(SMALTI_F16)
KERNEL(divide_rows_bf16) DIVIDE_ROWS(SMALTI_BF16)
