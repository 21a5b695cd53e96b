/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Vectors of f32 of the width of the instruction set that this source is compiled for. The compiler's vector
 * extensions do arithmetic and comparison; the few functions here do the rest. The sources are compiled once
 * per instruction set with other flags; see kernels.h. */

#include "base/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VEC_BYTES 64
#elif defined(__AVX2__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif

enum { LANES = VEC_BYTES / 4 };

typedef float vec __attribute__((vector_size(VEC_BYTES)));
typedef int32_t ivec __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t uvec __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t hvec __attribute__((vector_size(VEC_BYTES / 2)));
typedef uint8_t bvec __attribute__((vector_size(VEC_BYTES / 4)));

#define INLINE static inline __attribute__((always_inline))

/* Calls function(dtype, ...) with a dtype that the compiler knows: an INLINE function, one copy for each. */
#define FOR_DTYPE(dtype, function, ...)                                                                      \
	do {                                                                                                 \
		if ((dtype) == SMALTI_F32)                                                                   \
			function(SMALTI_F32, __VA_ARGS__);                                                   \
		else if ((dtype) == SMALTI_F16)                                                              \
			function(SMALTI_F16, __VA_ARGS__);                                                   \
		else                                                                                         \
			function(SMALTI_BF16, __VA_ARGS__);                                                  \
	} while (0)
/* Does the same for a dtype of weights, which may be 8-bit rows. */
#define FOR_WEIGHTS(dtype, function, ...)                                                                    \
	do {                                                                                                 \
		if ((dtype) == SMALTI_I8)                                                                    \
			function(SMALTI_I8, __VA_ARGS__);                                                    \
		else if ((dtype) == SMALTI_E4M3)                                                             \
			function(SMALTI_E4M3, __VA_ARGS__);                                                  \
		else if ((dtype) == SMALTI_E5M2)                                                             \
			function(SMALTI_E5M2, __VA_ARGS__);                                                  \
		else                                                                                         \
			FOR_DTYPE(dtype, function, __VA_ARGS__);                                             \
	} while (0)

/* Makes a vector of fp8 codes, widened to 16 bits with their sign, one of f16, whose values times FP8_FACTOR
 * are theirs if they are finite. @{ */
#define FP8_AS_F16(dtype, codes) ((dtype) == SMALTI_E4M3 ? ((codes) << 7) & 0xbf80 : (codes) << 8)
#define FP8_FACTOR(dtype)        ((dtype) == SMALTI_E4M3 ? 256.f : 1.f)
/* @} */

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* These take any alignment. @{ */
INLINE vec vec_load(const void *from)
{
	vec value;
	memcpy(&value, from, sizeof(value));
	return value;
}

INLINE void vec_store(void *to, vec value)
{
	memcpy(to, &value, sizeof(value));
}

INLINE vec vec_set1(float value)
{
	return value - (vec){0}; /* keeps -0 */
}

/* Loads the first `count` lanes, the others 0; count in [0, LANES]. */
INLINE vec vec_load_some(const void *from, int64_t count)
{
#if defined(__AVX512F__)
	return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
	vec value = {0};
	memcpy(&value, from, (size_t)count * sizeof(float));
	return value;
#endif
}

INLINE void vec_store_some(void *to, vec value, int64_t count)
{
#if defined(__AVX512F__)
	_mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)value);
#else
	memcpy(to, &value, (size_t)count * sizeof(float));
#endif
}
/* @} */

/* Returns a·b + c, rounded once where the instruction set can: the bits depend on it. */
INLINE vec vec_fma(vec a, vec b, vec c)
{
#if defined(__AVX512F__)
	return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
	return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
	return a * b + c;
#endif
}

/* Keeps a loaded value in a register: compilers would load it again for each use. */
INLINE vec vec_barrier(vec value)
{
#if defined(__AVX512F__)
	__asm__("" : "+v"(value));
#elif defined(__SSE2__)
	__asm__("" : "+x"(value));
#endif
	return value;
}

INLINE vec vec_select(ivec mask, vec yes, vec no)
{
	return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

/* Returns a > b ? a : b, hence b when either is NaN. */
INLINE vec vec_max(vec a, vec b)
{
#if defined(__AVX512F__)
	return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
	return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
	return (vec)_mm_max_ps((__m128)a, (__m128)b);
#else
	return vec_select(a > b, a, b);
#endif
}

/* Returns a < b ? a : b, hence b when either is NaN. */
INLINE vec vec_min(vec a, vec b)
{
#if defined(__AVX512F__)
	return (vec)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
	return (vec)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
	return (vec)_mm_min_ps((__m128)a, (__m128)b);
#else
	return vec_select(a < b, a, b);
#endif
}

INLINE vec vec_sqrt(vec value)
{
#if defined(__AVX512F__)
	return (vec)_mm512_sqrt_ps((__m512)value);
#elif defined(__AVX2__)
	return (vec)_mm256_sqrt_ps((__m256)value);
#elif defined(__SSE2__)
	return (vec)_mm_sqrt_ps((__m128)value);
#else
	for (int i = 0; i < LANES; i++)
		value[i] = __builtin_sqrtf(value[i]);
	return value;
#endif
}

/* Sums pairwise, so that the order does not depend on the compiler. */
INLINE float vec_sum(vec value)
{
	float lanes[LANES];
	memcpy(lanes, &value, sizeof(lanes));
	for (int half = LANES / 2; half; half /= 2)
		for (int i = 0; i < half; i++)
			lanes[i] += lanes[i + half];
	return lanes[0];
}

#if VEC_BYTES == 64
#define LOW_HALVES  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_HALVES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif VEC_BYTES == 32
#define LOW_HALVES  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW_HALVES  0, 4, 1, 5
#define HIGH_HALVES 2, 6, 3, 7
#endif

/* Moves rows[i] lane j to rows[j] lane i: each round interleaves the first half of the rows with the second,
 * which turns the index (row, lane) by one bit. */
INLINE void vec_transpose(vec rows[LANES])
{
	UNROLL
	for (int round = LANES; round > 1; round /= 2) {
		vec turned[LANES];
		UNROLL
		for (int i = 0; i < LANES / 2; i++) {
			vec a = rows[i], b = rows[i + LANES / 2];
			turned[2 * i] = __builtin_shufflevector(a, b, LOW_HALVES);
			turned[2 * i + 1] = __builtin_shufflevector(a, b, HIGH_HALVES);
		}
		UNROLL
		for (int i = 0; i < LANES; i++)
			rows[i] = turned[i];
	}
}

INLINE vec vec_from_bf16(hvec value)
{
	return (vec)(__builtin_convertvector(value, uvec) << 16);
}

/* Rounds to nearest even; NaN stays NaN. */
INLINE hvec vec_to_bf16(vec value)
{
	uvec bits = (uvec)value;
	uvec rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
	uvec quiet = (bits >> 16) | 0x40;
	uvec is_nan = (uvec)(value != value);
	return __builtin_convertvector((is_nan & quiet) | (~is_nan & rounded), hvec);
}

INLINE vec vec_from_f16(hvec value)
{
#if defined(__AVX512F__)
	return (vec)_mm512_cvtph_ps((__m256i)value);
#elif defined(__F16C__)
	return (vec)_mm256_cvtph_ps((__m128i)value);
#else
	vec wide;
	for (int i = 0; i < LANES; i++)
		wide[i] = smalti_f16_to_f32(value[i]);
	return wide;
#endif
}

/* Rounds to nearest even; overflow becomes infinity. */
INLINE hvec vec_to_f16(vec value)
{
#if defined(__AVX512F__)
	return (hvec)_mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__F16C__)
	return (hvec)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
#else
	hvec half;
	for (int i = 0; i < LANES; i++)
		half[i] = smalti_f32_to_f16(value[i]);
	return half;
#endif
}

/* Loads the first `count` lanes (all when there are that many), the others 0. */
INLINE hvec half_load(const char *from, int64_t count)
{
	hvec half = {0};
	if (count >= LANES) {
		memcpy(&half, from, sizeof(half));
		return half;
	}
#if defined(__AVX512F__)
	half = (hvec)_mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), from);
#else
	memcpy(&half, from, (size_t)count * 2);
#endif
	return half;
}

INLINE void half_store(char *to, hvec half, int64_t count)
{
	if (count >= LANES) {
		memcpy(to, &half, sizeof(half));
		return;
	}
#if defined(__AVX512F__)
	_mm256_mask_storeu_epi16(to, (__mmask16)((1u << count) - 1), (__m256i)half);
#else
	memcpy(to, &half, (size_t)count * 2);
#endif
}

INLINE vec vec_widen(enum smalti_dtype dtype, hvec half)
{
	return dtype == SMALTI_BF16 ? vec_from_bf16(half) : vec_from_f16(half);
}

INLINE hvec vec_narrow(enum smalti_dtype dtype, vec value)
{
	return dtype == SMALTI_BF16 ? vec_to_bf16(value) : vec_to_f16(value);
}

/* Rounds values to `dtype`. */
INLINE vec vec_round(enum smalti_dtype dtype, vec value)
{
	return dtype == SMALTI_F32 ? value : vec_widen(dtype, vec_narrow(dtype, value));
}

/* Reads elements [index, index + count) of `from`, any dtype and alignment, the other lanes 0. */
INLINE vec vec_read(enum smalti_dtype dtype, const void *from, int64_t index, int64_t count)
{
	if (dtype == SMALTI_F32) {
		const char *floats = (const char *)from + 4 * index;
		return count >= LANES ? vec_load(floats) : vec_load_some(floats, count);
	}
	return vec_widen(dtype, half_load((const char *)from + 2 * index, count));
}

INLINE void vec_write(enum smalti_dtype dtype, void *to, int64_t index, int64_t count, vec value)
{
	if (dtype == SMALTI_F32) {
		char *floats = (char *)to + 4 * index;
		if (count >= LANES)
			vec_store(floats, value);
		else
			vec_store_some(floats, value, count);
		return;
	}
	half_store((char *)to + 2 * index, vec_narrow(dtype, value), count);
}
