/* SPDX-License-Identifier: Apache-2.0
 *
 * What device kernels are written in: the C that OpenCL and CUDA have in common. SMALTI_OPENCL chooses
 * between them.
 *
 *   KERNEL(name)(GLOBAL const float *x, GLOBAL float *y, struct name_arguments a)
 *
 * A kernel has the buffers of its operation in their order (NULL: an absent one), then the arguments by
 * value. Work groups and threads have one dimension. Pointers name their address space, also in functions
 * (DEVICE). LOCAL_ARRAY() stands at the beginning of a kernel; its extent is a constant. */
#pragma once

#ifdef SMALTI_OPENCL
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef int int32_t;
typedef long int64_t;
#define KERNEL(name)                   __kernel void name
#define DEVICE                         static inline
#define GLOBAL                         __global
#define LOCAL                          __local
#define LOCAL_ARRAY(type, name, count) __local type name[count]
#define GROUP                          ((int64_t)get_group_id(0))
#define GROUPS                         ((int64_t)get_num_groups(0))
#define THREAD                         ((int)get_local_id(0))
#define THREADS                        ((int)get_local_size(0))
#define BARRIER()                      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define FLOAT_OF_BITS(bits)            as_float(bits)
#define BITS_OF_FLOAT(value)           as_uint(value)
#define LOAD_F16(x, i)                 vload_half((size_t)(i), (GLOBAL const half *)(x))
#define STORE_F16(y, i, value)         vstore_half_rte(value, (size_t)(i), (GLOBAL half *)(y))
/* The bits of a value in f16: not every device has variables of that type. @{ */
static inline ushort f16_of(float value)
{
	ushort bits;
	vstore_half_rte(value, 0, (half *)&bits);
	return bits;
}

static inline float float_of_f16(ushort bits)
{
	return vload_half(0, (const half *)&bits);
}
/* @} */
#define ROUND_F16(value) float_of_f16(f16_of(value))
#else
#include <cuda_fp16.h>
#include <stdint.h>
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
#define KERNEL(name) extern "C" __global__ void name
/* In as few registers as so many groups of so many threads have together. */
#define KERNEL_WITHIN(name, threads, groups)                                                                 \
	extern "C" __global__ void __launch_bounds__(threads, groups) name
#define DEVICE __device__ static inline
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY(type, name, count) __shared__ type name[count]
#define GROUP                          ((int64_t)blockIdx.x)
#define GROUPS                         ((int64_t)gridDim.x)
#define THREAD                         ((int)threadIdx.x)
#define THREADS                        ((int)blockDim.x)
#define BARRIER()                      __syncthreads()
#define FLOAT_OF_BITS(bits)            __uint_as_float(bits)
#define BITS_OF_FLOAT(value)           __float_as_uint(value)
#define LOAD_F16(x, i)                 __half2float(((const __half *)(x))[i])
#define STORE_F16(y, i, value)         (((__half *)(y))[i] = __float2half_rn(value))
#define ROUND_F16(value)               __half2float(__float2half_rn(value))
#define float_of_f16(bits)             __half2float(__ushort_as_half(bits))
#endif

/* Up to SMALTI_MANY buffers of one kind: the parameters of a kernel, and what an array of them begins with.
 */
#define MANY_PARAMETERS(type, x)                                                                             \
	GLOBAL type *x##0, GLOBAL type *x##1, GLOBAL type *x##2, GLOBAL type *x##3, GLOBAL type *x##4,       \
	    GLOBAL type *x##5, GLOBAL type *x##6, GLOBAL type *x##7, GLOBAL type *x##8, GLOBAL type *x##9,   \
	    GLOBAL type *x##10, GLOBAL type *x##11, GLOBAL type *x##12, GLOBAL type *x##13,                  \
	    GLOBAL type *x##14, GLOBAL type *x##15
#define MANY_VALUES(x)                                                                                       \
	{                                                                                                    \
		x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7, x##8, x##9, x##10, x##11, x##12, x##13,      \
		    x##14, x##15                                                                             \
	}

/* What memory hands over at a time, where it is aligned. */
struct chunk {
	uint words[4];
} __attribute__((aligned(16)));

/* Before a loop of constant extent, whose arrays are to be registers. */
#define UNROLL _Pragma("unroll")

/* Of all threads. */
#define INDEX (GROUP * THREADS + THREAD)

/* Element i of an array of `dtype`, as f32. */
DEVICE float load_element(GLOBAL const void *x, enum smalti_dtype dtype, int64_t i)
{
	if (dtype == SMALTI_F32)
		return ((GLOBAL const float *)x)[i];
	if (dtype == SMALTI_BF16)
		return FLOAT_OF_BITS((uint)((GLOBAL const ushort *)x)[i] << 16);
	return LOAD_F16(x, i);
}

/* Nearest even; NaN stays NaN. */
DEVICE ushort bf16_of(float value)
{
#ifdef __CUDACC__
	ushort rounded;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
	return rounded;
#else
	const uint bits = BITS_OF_FLOAT(value);
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (ushort)(bits >> 16 | 0x40);
	return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}

/* What is left of a value in `dtype`. */
DEVICE float rounded_to(enum smalti_dtype dtype, float value)
{
	if (dtype == SMALTI_BF16)
		return FLOAT_OF_BITS((uint)bf16_of(value) << 16);
	return dtype == SMALTI_F16 ? ROUND_F16(value) : value;
}

DEVICE void store_element(GLOBAL void *y, enum smalti_dtype dtype, int64_t i, float value)
{
	if (dtype == SMALTI_F32)
		((GLOBAL float *)y)[i] = value;
	else if (dtype == SMALTI_BF16)
		((GLOBAL ushort *)y)[i] = bf16_of(value);
	else
		STORE_F16(y, i, value);
}

DEVICE int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#define LOG2E 0x1.715476p0f

DEVICE float silu_of(float x)
{
	return x / (1.f + exp(-x));
}

/* docs/reference.md 3.6: (1 + tanh(u)) / 2 is the logistic function of 2u. */
DEVICE float gelu_of(float x)
{
	return x / (1.f + exp(-1.5957691216f * (x + 0.044715f * x * x * x)));
}
