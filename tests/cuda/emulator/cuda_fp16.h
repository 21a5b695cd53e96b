/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels' dialect takes of CUDA, for a compiler of CPUs: it stands before CUDA's header of that
 * name. The threads of a group are fibers (../fibers.h). */
#pragma once

#include <cstdint>
#include <cstring>
#include <math.h> /* which has the overloads for float, too */

extern "C" {
#include "base/dtype.h"
}
#include "cuda/fibers.h"
#include "sanitized.h"

#define __global__
#define __device__
#define __launch_bounds__(threads, groups)
/* One group runs at a time: its arrays are static. They are in a section that is filled before each group, or
 * else watched by the sanitizer. */
#if SANITIZED
#define __shared__ static
#else
#define __shared__ static __attribute__((section("standin_shared"), aligned(16)))
#endif

struct standin_index {
	unsigned x;
};
static standin_index blockIdx, gridDim, blockDim;
#define threadIdx (standin_index{standin_fiber()})

#define __syncthreads standin_barrier

static inline float __uint_as_float(unsigned bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline unsigned __float_as_uint(float value)
{
	unsigned bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

struct __half {
	uint16_t bits;
};

static inline __half __ushort_as_half(uint16_t bits)
{
	return {bits};
}

static inline float __half2float(__half value)
{
	return smalti_f16_to_f32(value.bits);
}

static inline __half __float2half_rn(float value)
{
	return {smalti_f32_to_f16(value)};
}
