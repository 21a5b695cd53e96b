/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in eights of values, which a thread has in registers: 16 bytes of f16 and bf16, twice that of f32.
 * Their memory is aligned. Kernels have a form for each dtype, so that it is a constant. */
#pragma once

#ifdef SMALTI_OPENCL
/* Returns two elements in a word, the first one in its lower part. */
DEVICE uint two_of(enum smalti_dtype dtype, float first, float second)
{
	if (dtype == SMALTI_BF16)
		return bf16_of(first) | (uint)bf16_of(second) << 16;
	return f16_of(first) | (uint)f16_of(second) << 16;
}
#endif

/* Loads the i-th four of an array of f32. */
DEVICE void load_four(GLOBAL const void *x, int64_t i, float values[4])
{
	const struct chunk chunk = ((GLOBAL const struct chunk *)x)[i];
	UNROLL
	for (int j = 0; j < 4; j++)
		values[j] = FLOAT_OF_BITS(chunk.words[j]);
}

/* Stores them likewise. */
DEVICE void store_four(GLOBAL void *y, int64_t i, const float values[4])
{
	struct chunk chunk;
	UNROLL
	for (int j = 0; j < 4; j++)
		chunk.words[j] = BITS_OF_FLOAT(values[j]);
	((GLOBAL struct chunk *)y)[i] = chunk;
}

/* Loads the i-th eight. */
DEVICE void load_eight(GLOBAL const void *x, enum smalti_dtype dtype, int64_t i, float values[8])
{
	if (dtype == SMALTI_F32) {
		load_four(x, 2 * i, values);
		load_four(x, 2 * i + 1, values + 4);
		return;
	}
	const struct chunk chunk = ((GLOBAL const struct chunk *)x)[i];
	UNROLL
	for (int j = 0; j < 8; j++) {
		const uint bits = chunk.words[j / 2] >> 16 * (j % 2) & 0xffffu;
		values[j] = dtype == SMALTI_BF16 ? FLOAT_OF_BITS(bits << 16) : float_of_f16((ushort)bits);
	}
}

/* Stores it likewise. */
DEVICE void store_eight(GLOBAL void *y, enum smalti_dtype dtype, int64_t i, const float values[8])
{
	struct chunk chunk;
	if (dtype == SMALTI_F32) {
		store_four(y, 2 * i, values);
		store_four(y, 2 * i + 1, values + 4);
		return;
	}
	UNROLL
	for (int j = 0; j < 4; j++)
		chunk.words[j] = two_of(dtype, values[2 * j], values[2 * j + 1]);
	((GLOBAL struct chunk *)y)[i] = chunk;
}

/* Define the kernels NAME_f32, NAME_f16 and NAME_bf16, or only the last two, for a constant `dtype`. @{ */
#define KERNEL_FORM(name, constant, parameters, ...)                                                         \
	KERNEL(name) parameters                                                                              \
	{                                                                                                    \
		const enum smalti_dtype dtype = constant;                                                    \
		__VA_ARGS__                                                                                  \
	}
#define KERNEL_HALVES(name, parameters, ...)                                                                 \
	KERNEL_FORM(name##_f16, SMALTI_F16, parameters, __VA_ARGS__)                                         \
	KERNEL_FORM(name##_bf16, SMALTI_BF16, parameters, __VA_ARGS__)
#define KERNEL_FORMS(name, parameters, ...)                                                                  \
	KERNEL_FORM(name##_f32, SMALTI_F32, parameters, __VA_ARGS__)                                         \
	KERNEL_HALVES(name, parameters, __VA_ARGS__)
/* @} */
