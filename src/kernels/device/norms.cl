/* SPDX-License-Identifier: Apache-2.0 */

/* y = LN(x)·(1 + scale) + shift over each row of `dim`; a group per row. */
KERNEL(ln_modulate)(GLOBAL const float *x, GLOBAL const float *modulation, GLOBAL void *y,
		    struct ln_modulate_arguments a)
{
	LOCAL_ARRAY(float, room, 128);
	const int64_t first = GROUP * a.dim;
	GLOBAL const float *shift = modulation + a.shift_row * a.dim, *scale = modulation + a.scale_row * a.dim;
	float sum = 0, squares = 0;
	for (int64_t i = THREAD; i < a.dim; i += THREADS)
		sum += x[first + i];
	const float mean = group_sum(sum, room) / (float)a.dim;
	for (int64_t i = THREAD; i < a.dim; i += THREADS) {
		const float deviation = x[first + i] - mean;
		squares += deviation * deviation;
	}
	const float factor = 1.f / sqrt(group_sum(squares, room) / (float)a.dim + a.epsilon);
	for (int64_t i = THREAD; i < a.dim; i += THREADS)
		store_element(y, a.dtype, first + i, (x[first + i] - mean) * factor * (1.f + scale[i]) + shift[i]);
}
