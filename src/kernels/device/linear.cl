/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows a matrix product. */

/* Returns y's element, from z's with the bias and from what y's was. */
DEVICE float finished(enum smalti_epilogue epilogue, float z, float gate, float y)
{
	if (epilogue == SMALTI_EPILOGUE_GELU)
		return gelu_of(z);
	if (epilogue == SMALTI_EPILOGUE_SILU)
		return silu_of(z);
	if (epilogue == SMALTI_EPILOGUE_ADD)
		return y + z;
	return epilogue == SMALTI_EPILOGUE_GATE_ADD ? fma(gate, z, y) : z;
}

/* Rounds x [rows, in] of `dtype` to rows of int8 and their scales (base/rows8.h); a group per row. Quotients are made in
 * double, as those of f32 need not be exact here. */
KERNEL(round_rows)(GLOBAL const void *x, GLOBAL uchar *y, GLOBAL float *scales,
		   struct integer_product_arguments a)
{
	LOCAL_ARRAY(float, room, SMALTI_DEVICE_THREADS);
	const int64_t first = GROUP * a.in;
	float most = 0, check = 0;
	for (int64_t k = THREAD; k < a.in; k += THREADS) {
		const float value = load_element(x, a.dtype, first + k);
		most = fmax(most, fabs(value));
		check += value * 0; /* NaN if it is not finite */
	}
	const float largest = most_once(most, room);
	BARRIER();
	const float scale = (float)((double)largest / 127) + group_sum(check, room);
	if (THREAD == 0)
		scales[GROUP] = scale;
	for (int64_t k = THREAD; k < a.in; k += THREADS) {
		const float value = load_element(x, a.dtype, first + k);
		const float rounded = scale > 0 ? rint((float)((double)value / (double)scale)) : 0.f;
		y[first + k] = (uchar)(int)fmax(fmin(rounded, 127.f), -127.f);
	}
}

/* Returns z's element of a sum of products of integers, with the scales of its row and of its row of weights. */
DEVICE float scaled_sum(int sum, float scale, GLOBAL const uchar *weights, int64_t column,
			const struct integer_product_arguments *a)
{
	const int64_t scale_at = (a->in + 15) / 16 * 16;
	GLOBAL const uchar *row = weights + (a->w_row + column) * (scale_at + 16);
	return (float)sum * (scale * *(GLOBAL const float *)(row + scale_at));
}

/* z of rounded rows and rows of int8 with their scales, a thread for each element. */
KERNEL(multiply_integers)(GLOBAL const uchar *x, GLOBAL const float *scales, GLOBAL const uchar *weights,
			  GLOBAL float *z, struct integer_product_arguments a)
{
	const int64_t row = INDEX / a.out, column = INDEX % a.out, stride = (a.in + 15) / 16 * 16 + 16;
	int sum = 0;
	if (row >= a.rows)
		return;
	GLOBAL const uchar *left = x + row * a.in, *right = weights + (a.w_row + column) * stride;
	for (int64_t k = 0; k < a.in; k++) {
		const int l = left[k], r = right[k];
		sum += (l < 128 ? l : l - 256) * (r < 128 ? r : r - 256);
	}
	z[a.z_first + row * a.z_stride + column] = scaled_sum(sum, scales[row], weights, column, &a);
}

/* z of the sums that are in its place, a thread for each element. */
KERNEL(scale_integers)(GLOBAL const float *scales, GLOBAL const uchar *weights, GLOBAL float *z,
		       struct integer_product_arguments a)
{
	const int64_t row = INDEX / a.out, column = INDEX % a.out, at = a.z_first + row * a.z_stride + column;
	if (row < a.rows)
		z[at] = scaled_sum(((GLOBAL const int *)z)[at], scales[row], weights, column, &a);
}

/* y [rows, out] += gate ⊙ z, where z is bf16 with its bias added and its rows are whole eights, of which a thread has
 * one. */
KERNEL(add_gated_eights)(GLOBAL const void *z, GLOBAL const float *gate, GLOBAL float *y, struct matmul_arguments a)
{
	const uint i = (uint)INDEX, eights = (uint)a.out / 8;
	float values[8], factors[8], sums[8];
	if (INDEX >= a.rows * eights)
		return;
	load_eight(z, SMALTI_BF16, i, values);
	load_eight(y, SMALTI_F32, i, sums);
	load_eight(gate, SMALTI_F32, a.gate_row * eights + i % eights, factors);
	UNROLL
	for (int j = 0; j < 8; j++)
		sums[j] = fma(factors[j], values[j], sums[j]);
	store_eight(y, SMALTI_F32, i, sums);
}

/* Tells whether y is read. */
DEVICE bool adds_to(enum smalti_epilogue epilogue)
{
	return epilogue == SMALTI_EPILOGUE_ADD || epilogue == SMALTI_EPILOGUE_GATE_ADD;
}

/* y [rows, out] from z = x·Wᵀ: see kernels/epilogue.h. A thread for each element. */
KERNEL(epilogue)(GLOBAL const float *z, GLOBAL const float *bias, GLOBAL const float *gate, GLOBAL void *y,
		 struct matmul_arguments a)
{
	const int64_t column = INDEX % a.out;
	if (INDEX >= a.rows * a.out)
		return;
	const float value = bias ? z[INDEX] + bias[column] : z[INDEX];
	const float by = a.epilogue == SMALTI_EPILOGUE_GATE_ADD ? gate[a.gate_row * a.out + column] : 1.f;
	const float sum = adds_to(a.epilogue) ? load_element(y, a.result, INDEX) : 0.f;
	store_element(y, a.result, INDEX, finished(a.epilogue, value, by, sum));
}

/* Does the same in eights, of which a thread has one. It loads all that it needs before it computes; `epilogue` is a
 * constant. */
DEVICE void finish_eight(enum smalti_dtype dtype, enum smalti_epilogue epilogue, GLOBAL const float *z,
			 GLOBAL const float *bias, GLOBAL const float *gate, GLOBAL void *y,
			 const struct matmul_arguments *a)
{
	const uint i = (uint)INDEX, eights = (uint)a->out / 8, column = i % eights;
	float values[8], offsets[8] = {0}, factors[8] = {0}, sums[8] = {0};
	if (INDEX >= a->rows * eights)
		return;
	load_eight(z, SMALTI_F32, i, values);
	if (adds_to(epilogue))
		load_eight(y, dtype, i, sums);
	if (epilogue == SMALTI_EPILOGUE_GATE_ADD)
		load_eight(gate, SMALTI_F32, a->gate_row * eights + column, factors);
	if (bias)
		load_eight(bias, SMALTI_F32, column, offsets);
	UNROLL
	for (int j = 0; j < 8; j++)
		values[j] = finished(epilogue, values[j] + offsets[j], factors[j], sums[j]);
	store_eight(y, dtype, i, values);
}

#define FINISH_BY(epilogue)                                                                                  \
	case epilogue:                                                                                       \
		finish_eight(dtype, epilogue, z, bias, gate, y, &a);                                         \
		break;
KERNEL_FORMS(epilogue, (GLOBAL const float *z, GLOBAL const float *bias, GLOBAL const float *gate, GLOBAL void *y,
	struct matmul_arguments a),
	switch (a.epilogue) {
		FINISH_BY(SMALTI_EPILOGUE_GELU)
		FINISH_BY(SMALTI_EPILOGUE_SILU)
		FINISH_BY(SMALTI_EPILOGUE_ADD)
		FINISH_BY(SMALTI_EPILOGUE_GATE_ADD)
	default:
		finish_eight(dtype, SMALTI_EPILOGUE_NONE, z, bias, gate, y, &a);
	})
