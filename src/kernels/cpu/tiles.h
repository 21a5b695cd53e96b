/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Products of bf16 tiles with f32 sums, by AMX or else by AVX-512's dot products of pairs. A tile is 1 KiB,
 * 16 rows of 64 bytes:
 *   a  [16 rows, 32 terms] bf16;
 *   b  [16 pairs of terms, 16 columns, 2] bf16;
 *   c  [16 rows, 16 columns] f32.
 * Between tiles_begin() and tiles_end() the thread's tile registers are this file's. */
#if defined(__AMX_BF16__)
#include "kernels/cpu/amx.h"
#else
#include "kernels/cpu/vector.h"
enum { TILE = 16 };
#endif

enum { TILE_TERMS = 32, TILE_FLOATS = TILE * TILE, TILE_BYTES = 4 * TILE_FLOATS };

/* A block of at most 2 × 2 tiles of c: c (+)= Σ a·b over `terms`. The last tiles of a and b have zeros behind
 * the terms. Distances are in tiles. */
struct tile_product {
	int64_t terms;
	const float *a, *b;
	int64_t a_row, a_step;    /* from a tile of a to the one below, and to the next of the sum */
	int64_t b_column, b_step; /* likewise to the one on the right */
	float *c;
	int64_t c_row, c_column;
	/* The next data, as such a block: bytes from a row to the next, and to the tile on the right. */
	const char *next; /* NULL: nothing */
	int64_t next_row, next_column;
};

/* Prefetches some rows of the next data, from a row of the block on. */
INLINE void tiles_ask(const struct tile_product *p, int64_t row, const int rows, const int columns)
{
	for (int64_t i = row; p->next && i < row + rows; i++)
		for (int column = 0; column < columns; column++)
			__builtin_prefetch(p->next + i * p->next_row + column * p->next_column, 1, 2);
}

INLINE __mmask32 first_of(int64_t count)
{
	return count >= TILE_TERMS ? UINT32_MAX : (1u << count) - 1;
}

typedef uint16_t tile_codes __attribute__((vector_size(64)));

/* Reads the first `count` of 32 elements, rounded; zeros after them. */
INLINE vec read_rounded(enum smalti_dtype dtype, const char *from, int64_t count)
{
	const __mmask32 mask = first_of(count);
	if (dtype == SMALTI_I8) {
		__m256i integers = _mm256_maskz_loadu_epi8(mask, from);
		__m512 lower = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(integers)));
		__m512 upper =
		    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(integers, 1)));
		return (vec)_mm512_cvtne2ps_pbh(upper, lower);
	}
	if (dtype == SMALTI_E4M3 || dtype == SMALTI_E5M2) {
		const tile_codes wide = (tile_codes)_mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, from));
		const __m512i codes = (__m512i)FP8_AS_F16(dtype, wide);
		const __m512 factor = _mm512_set1_ps(FP8_FACTOR(dtype));
		__m512 lower = _mm512_cvtph_ps(_mm512_castsi512_si256(codes)) * factor;
		__m512 upper = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(codes, 1)) * factor;
		return (vec)_mm512_cvtne2ps_pbh(upper, lower);
	}
	if (dtype == SMALTI_F32) {
		__m512 low = _mm512_maskz_loadu_ps((__mmask16)mask, from);
		__m512 high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + 64);
		return (vec)_mm512_cvtne2ps_pbh(high, low);
	}
	__m512i halves = _mm512_maskz_loadu_epi16(mask, from);
	if (dtype == SMALTI_BF16)
		return (vec)halves;
	__m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
	__m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
	return (vec)_mm512_cvtne2ps_pbh(high, low);
}

#if defined(__AMX_BF16__)

/* Multiplies: tiles 0 to 3 hold c, 4 and 5 a, 6 and 7 b. */
INLINE void tiles_multiply(const int rows, const int columns, const bool add, const struct tile_product *p)
{
	float *c01 = p->c + p->c_column * TILE_FLOATS, *c10 = p->c + p->c_row * TILE_FLOATS;
	float *c11 = c10 + p->c_column * TILE_FLOATS;
	tiles_ask(p, 0, rows * TILE, columns);
	TILES_FENCE();
	if (add) {
		_tile_loadd(0, p->c, 64);
		if (columns > 1)
			_tile_loadd(1, c01, 64);
		if (rows > 1)
			_tile_loadd(2, c10, 64);
		if (rows > 1 && columns > 1)
			_tile_loadd(3, c11, 64);
	} else {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	}
	const float *a = p->a, *b = p->b;
	for (int64_t term = 0; term < p->terms; term += TILE_TERMS) {
		_tile_loadd(4, a, 64);
		_tile_loadd(6, b, 64);
		_tile_dpbf16ps(0, 4, 6);
		if (columns > 1) {
			_tile_loadd(7, b + p->b_column * TILE_FLOATS, 64);
			_tile_dpbf16ps(1, 4, 7);
		}
		if (rows > 1) {
			_tile_loadd(5, a + p->a_row * TILE_FLOATS, 64);
			_tile_dpbf16ps(2, 5, 6);
		}
		if (rows > 1 && columns > 1)
			_tile_dpbf16ps(3, 5, 7);
		a += p->a_step * TILE_FLOATS;
		b += p->b_step * TILE_FLOATS;
	}
	_tile_stored(0, p->c, 64);
	if (columns > 1)
		_tile_stored(1, c01, 64);
	if (rows > 1)
		_tile_stored(2, c10, 64);
	if (rows > 1 && columns > 1)
		_tile_stored(3, c11, 64);
	TILES_FENCE();
}

#else

INLINE void tiles_begin(void)
{
}

INLINE void tiles_end(void)
{
}

/* Multiplies `rows` rows of each of `columns` adjacent tiles of c. */
INLINE void rows_multiply(const int rows, const int columns, const bool add, const struct tile_product *p,
			  const float *a, const float *b, float *c)
{
	__m512 sums[TILE];
	UNROLL
	for (int i = 0; i < rows * columns; i++)
		sums[i] = add ? _mm512_loadu_ps(c + i / rows * p->c_column * TILE_FLOATS + i % rows * TILE)
			      : _mm512_setzero_ps();
	for (int64_t terms = p->terms; terms > 0; terms -= TILE_TERMS) {
		const int64_t pairs = terms < TILE_TERMS ? (terms + 1) / 2 : TILE;
		for (int64_t pair = 0; pair < pairs; pair++) {
			vec right[2];
			UNROLL
			for (int i = 0; i < columns; i++)
				right[i] = vec_load(b + i * p->b_column * TILE_FLOATS + pair * TILE);
			UNROLL
			for (int row = 0; row < rows; row++) {
				const vec left = (vec)_mm512_set1_ps(a[row * TILE + pair]);
				UNROLL
				for (int i = 0; i < columns; i++)
					sums[i * rows + row] = _mm512_dpbf16_ps(
					    sums[i * rows + row], (__m512bh)left, (__m512bh)right[i]);
			}
		}
		a += p->a_step * TILE_FLOATS;
		b += p->b_step * TILE_FLOATS;
	}
	UNROLL
	for (int i = 0; i < rows * columns; i++)
		_mm512_storeu_ps(c + i / rows * p->c_column * TILE_FLOATS + i % rows * TILE, sums[i]);
}

/* Multiplies half of two tiles at a time, so that a row's pair is read once for both. Prefetches in as small
 * parts, which do not have to wait for each other. */
INLINE void tiles_multiply(const int rows, const int columns, const bool add, const struct tile_product *p)
{
	for (int row = 0; row < rows; row++) {
		const float *a = p->a + row * p->a_row * TILE_FLOATS;
		float *c = p->c + row * p->c_row * TILE_FLOATS;
		if (columns > 1) {
			tiles_ask(p, row * TILE, TILE / 2, 2);
			rows_multiply(TILE / 2, 2, add, p, a, p->b, c);
			tiles_ask(p, row * TILE + TILE / 2, TILE / 2, 2);
			rows_multiply(TILE / 2, 2, add, p, a + TILE_FLOATS / 2, p->b, c + TILE_FLOATS / 2);
		} else {
			tiles_ask(p, row * TILE, TILE, 1);
			rows_multiply(TILE, 1, add, p, a, p->b, c);
		}
	}
}

#endif
