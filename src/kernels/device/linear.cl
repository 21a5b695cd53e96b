/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows a matrix product. */

/* Element i of y, of that column, from z's. */
DEVICE float finished(float value, int64_t i, int64_t column, GLOBAL const float *bias, GLOBAL const float *gate,
		      GLOBAL const void *y, const struct matmul_arguments *a)
{
	value += bias ? bias[column] : 0.f;
	if (a->epilogue == SMALTI_EPILOGUE_GELU)
		value = gelu_of(value);
	else if (a->epilogue == SMALTI_EPILOGUE_SILU)
		value = silu_of(value);
	else if (a->epilogue == SMALTI_EPILOGUE_GATE_ADD)
		value *= gate[a->gate_row * a->out + column];
	if (a->epilogue == SMALTI_EPILOGUE_ADD || a->epilogue == SMALTI_EPILOGUE_GATE_ADD)
		value += load_element(y, a->result, i);
	return value;
}

/* y [rows, out] += gate ⊙ z, where z is bf16 with its bias added and its rows are whole chunks of eight. A
 * thread for each chunk. */
KERNEL(add_gated)(GLOBAL const struct chunk *z, GLOBAL const struct chunk *gate, GLOBAL struct chunk *y,
		  struct matmul_arguments a)
{
	const int64_t row = a.out / 8;
	if (INDEX >= a.rows * row)
		return;
	const struct chunk values = z[INDEX];
	UNROLL
	for (int part = 0; part < 2; part++) {
		const struct chunk factors = gate[2 * (a.gate_row * row + INDEX % row) + part];
		struct chunk sums = y[2 * INDEX + part];
		UNROLL
		for (int i = 0; i < 4; i++) {
			const uint pair = values.words[2 * part + i / 2];
			const float value = FLOAT_OF_BITS(i % 2 ? pair & 0xffff0000u : pair << 16);
			sums.words[i] = BITS_OF_FLOAT(FLOAT_OF_BITS(sums.words[i]) +
						      value * FLOAT_OF_BITS(factors.words[i]));
		}
		y[2 * INDEX + part] = sums;
	}
}

/* y [rows, out] from z = x·Wᵀ: see kernels/epilogue.h. A thread for each four elements. */
KERNEL(epilogue)(GLOBAL const float *z, GLOBAL const float *bias, GLOBAL const float *gate, GLOBAL void *y,
		 struct matmul_arguments a)
{
	const int64_t first = 4 * INDEX, count = a.rows * a.out;
	int64_t column = first % a.out;
	float values[4];
	UNROLL
	for (int i = 0; i < 4; i++)
		values[i] = first + i < count ? z[first + i] : 0;
	UNROLL
	for (int i = 0; i < 4; i++) {
		if (first + i < count)
			store_element(y, a.result, first + i,
				      finished(values[i], first + i, column, bias, gate, y, &a));
		column = column + 1 < a.out ? column + 1 : 0;
	}
}
