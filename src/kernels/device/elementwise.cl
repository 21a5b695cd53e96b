/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread for each element, or for each word of bytes. */

/* y = silu(x), f32 [count]. */
KERNEL(silu)(GLOBAL const float *x, GLOBAL float *y, struct silu_arguments a)
{
	const int64_t i = INDEX;
	if (i < a.count)
		y[i] = silu_of(x[i]);
}

/* y[rows, dim] += row[dim]. */
KERNEL(add_row)(GLOBAL const float *row, GLOBAL float *y, struct add_row_arguments a)
{
	const int64_t i = INDEX;
	if (i < a.rows * a.dim)
		y[i] += row[i % a.dim];
}

/* Does the same in eights, of which a thread has one. */
KERNEL(add_row_eights)(GLOBAL const float *row, GLOBAL float *y, struct add_row_arguments a)
{
	const uint i = (uint)INDEX, eights = (uint)a.dim / 8;
	float values[8], sums[8];
	if (INDEX >= a.rows * eights)
		return;
	load_eight(y, SMALTI_F32, i, sums);
	load_eight(row, SMALTI_F32, i % eights, values);
	UNROLL
	for (int j = 0; j < 8; j++)
		sums[j] += values[j];
	store_eight(y, SMALTI_F32, i, sums);
}

/* y [rows, dim] = table [rows, dim] + rows of embedding [*, dim]. */
KERNEL(modulation)(GLOBAL const float *table, GLOBAL const float *embedding, GLOBAL float *y,
		   struct modulation_arguments a)
{
	const int64_t row = INDEX / a.dim, column = INDEX % a.dim;
	if (row < a.rows)
		y[INDEX] = table[INDEX] + embedding[(a.step * a.period + row % a.period) * a.dim + column];
}

/* y[count] = factor·x[count]. */
KERNEL(scale)(GLOBAL const float *x, GLOBAL float *y, struct scale_arguments a)
{
	if (INDEX < a.count)
		y[INDEX] = a.factor * x[INDEX];
}

/* Columns first … of y [rows, stride] += x [rows, columns]. */
KERNEL(add_columns)(GLOBAL const float *x, GLOBAL float *y, struct add_columns_arguments a)
{
	const int64_t row = INDEX / a.columns, column = INDEX % a.columns;
	if (row < a.rows)
		y[row * a.stride + a.first + column] += x[INDEX];
}

/* Word `word` of y [bytes] = x [bytes], which may end in the middle of it. */
DEVICE void copy_word(GLOBAL const uchar *x, GLOBAL uchar *y, int64_t bytes, int64_t word)
{
	if (4 * word + 4 <= bytes)
		((GLOBAL uint *)y)[word] = ((GLOBAL const uint *)x)[word];
	else
		for (int64_t byte = 4 * word; byte < bytes; byte++)
			y[byte] = x[byte];
}

KERNEL(copy)(GLOBAL const uchar *x, GLOBAL uchar *y, struct copy_arguments a)
{
	copy_word(x, y, a.bytes, INDEX);
}

/* The second's place may be no multiple of a word. */
KERNEL(concat)(GLOBAL const uchar *first, GLOBAL const uchar *second, GLOBAL uchar *y, struct concat_arguments a)
{
	const int64_t words = (a.first_bytes + 3) / 4;
	if (INDEX < words)
		copy_word(first, y, a.first_bytes, INDEX);
	else if (a.first_bytes % 4 == 0)
		copy_word(second, y + a.first_bytes, a.second_bytes, INDEX - words);
	else
		for (int64_t byte = 4 * (INDEX - words); byte < 4 * (INDEX - words + 1); byte++)
			if (byte < a.second_bytes)
				y[a.first_bytes + byte] = second[byte];
}

/* A thread for two bytes. */
KERNEL(slice_columns)(GLOBAL const uchar *x, GLOBAL uchar *y, struct slice_columns_arguments a)
{
	const int64_t columns = a.columns / 2, row = INDEX / columns, column = INDEX % columns;
	if (row < a.rows * a.parts)
		((GLOBAL ushort *)y)[INDEX] = ((GLOBAL const ushort *)(x + row * a.in + a.first))[column];
}

KERNEL(clear)(GLOBAL uchar *y, struct clear_arguments a)
{
	if (4 * INDEX + 4 <= a.bytes)
		((GLOBAL uint *)y)[INDEX] = 0;
	else
		for (int64_t byte = 4 * INDEX; byte < a.bytes; byte++)
			y[byte] = 0;
}

/* See struct operand_arguments. */
KERNEL(operand)(GLOBAL const void *x, GLOBAL void *y, struct operand_arguments a)
{
	const int64_t row = INDEX / a.columns, column = INDEX % a.columns;
	if (row < a.rows)
		store_element(
		    y, a.result, INDEX,
		    rounded_to(a.compute, load_element(x, a.dtype, a.first + row * a.stride + column)));
}

/* Returns the value of a code of 8 bits, if it is finite. Codes of fp8 are made those of f16: of e5m2 the upper
 * byte, of e4m3 the bits behind the sign, which then stand for 2^-8 of the value. */
DEVICE float value_of_code(enum smalti_dtype dtype, uint code)
{
	if (dtype == SMALTI_I8)
		return (float)((int)code - (code < 128 ? 0 : 256));
	if (dtype == SMALTI_E5M2)
		return float_of_f16((ushort)(code << 8));
	return float_of_f16((ushort)((code & 128) << 8 | (code & 127) << 7)) * 256.f;
}

/* Does the same of 8-bit rows. */
KERNEL(operand_rows8)(GLOBAL const uchar *x, GLOBAL void *y, struct operand_arguments a)
{
	const int64_t row = INDEX / a.columns, column = INDEX % a.columns;
	if (row >= a.rows)
		return;
	GLOBAL const uchar *codes = x + a.first + row * a.stride;
	const float scale = *(GLOBAL const float *)(codes + a.stride - 16);
	store_element(y, a.result, INDEX, rounded_to(a.compute, scale * value_of_code(a.dtype, codes[column])));
}

/* Does the same in eights, of which a thread has one; `compute` is `result`. */
DEVICE void take_eight(enum smalti_dtype dtype, GLOBAL const void *x, GLOBAL void *y,
		       const struct operand_arguments *a)
{
	const uint i = (uint)INDEX, eights = (uint)a->columns / 8, row = i / eights;
	float values[8];
	if (INDEX >= a->rows * eights)
		return;
	load_eight(x, a->dtype, a->first / 8 + row * (a->stride / 8) + (i - row * eights), values);
	store_eight(y, dtype, i, values);
}

KERNEL_FORMS(operand, (GLOBAL const void *x, GLOBAL void *y, struct operand_arguments a),
	take_eight(dtype, x, y, &a);)
