/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows a matrix product: a thread for each element. */

/* y [rows, out] from z = x·Wᵀ: see kernels/epilogue.h. */
KERNEL(epilogue)(GLOBAL const float *z, GLOBAL const float *bias, GLOBAL const float *gate, GLOBAL void *y,
		 struct matmul_arguments a)
{
	const int64_t i = INDEX, column = i % a.out;
	if (i >= a.rows * a.out)
		return;
	float value = z[i] + (bias ? bias[column] : 0.f);
	if (a.epilogue == SMALTI_EPILOGUE_GELU)
		value = gelu_of(value);
	else if (a.epilogue == SMALTI_EPILOGUE_SILU)
		value = silu_of(value);
	else if (a.epilogue == SMALTI_EPILOGUE_GATE_ADD)
		value *= gate[a.gate_row * a.out + column];
	if (a.epilogue == SMALTI_EPILOGUE_ADD || a.epilogue == SMALTI_EPILOGUE_GATE_ADD)
		value += load_element(y, a.result, i);
	store_element(y, a.result, i, value);
}
