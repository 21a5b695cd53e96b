/* SPDX-License-Identifier: Apache-2.0
 *
 * The layouts are those of ggml (ggml-common.h), the values those of its dequantize_row_*(): f32, rounded
 * after each operation. */
#include "checkpoint/gguf_types.h"

enum { SMALL = 32, LARGE = 256 }; /* values of a block */

static float f16_at(const unsigned char *from)
{
	return smalti_f16_to_f32((uint16_t)(from[0] | from[1] << 8));
}

/* Returns bit `i` of bits at `from`, lowest first. */
static int bit_at(const unsigned char *from, int i)
{
	return from[i / 8] >> (i % 8) & 1;
}

/* Returns value `i` of the nibbles at `from`: the low ones are the first half. */
static int nibble_at(const unsigned char *from, int i)
{
	return i < SMALL / 2 ? from[i] & 15 : from[i - SMALL / 2] >> 4;
}

static void decode_q4_0(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 18)
		for (int i = 0; i < SMALL; i++)
			*to++ = f16_at(from) * (float)(nibble_at(from + 2, i) - 8);
}

static void decode_q4_1(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 20)
		for (int i = 0; i < SMALL; i++) {
			const float scaled = f16_at(from) * (float)nibble_at(from + 4, i);
			*to++ = scaled + f16_at(from + 2);
		}
}

static void decode_q5_0(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 22)
		for (int i = 0; i < SMALL; i++)
			*to++ =
			    f16_at(from) * (float)((nibble_at(from + 6, i) | bit_at(from + 2, i) << 4) - 16);
}

static void decode_q5_1(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 24)
		for (int i = 0; i < SMALL; i++) {
			const float scaled =
			    f16_at(from) * (float)(nibble_at(from + 8, i) | bit_at(from + 4, i) << 4);
			*to++ = scaled + f16_at(from + 2);
		}
}

static void decode_q8_0(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 34)
		for (int i = 0; i < SMALL; i++)
			*to++ = f16_at(from) * (float)(signed char)from[2 + i];
}

/* Returns the scale and the minimum of sub-block `i` of eight, of 6 bits each, from 12 bytes. */
static void scale_and_minimum(const unsigned char *from, int i, float *scale, float *minimum)
{
	if (i < 4) {
		*scale = (float)(from[i] & 63);
		*minimum = (float)(from[i + 4] & 63);
		return;
	}
	*scale = (float)((from[i + 4] & 15) | (from[i - 4] >> 6) << 4);
	*minimum = (float)(from[i + 4] >> 4 | (from[i] >> 6) << 4);
}

/* Decodes a block of eight sub-blocks of 4 bits, with fifth bits (NULL: none): bit i of byte j belongs to
 * value j of sub-block i. */
static void decode_sub_blocks(const unsigned char *from, const unsigned char *fifth,
			      const unsigned char *nibbles, float *to)
{
	for (int i = 0; i < 8; i++) {
		float scale, minimum;
		scale_and_minimum(from + 4, i, &scale, &minimum);
		scale *= f16_at(from);
		minimum *= f16_at(from + 2);
		for (int j = 0; j < SMALL; j++) {
			const int low = nibbles[i / 2 * SMALL + j] >> (i % 2 * 4) & 15;
			const float scaled = scale * (float)(low | (fifth ? (fifth[j] >> i & 1) << 4 : 0));
			*to++ = scaled - minimum;
		}
	}
}

static void decode_q4_k(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 144, to += LARGE)
		decode_sub_blocks(from, NULL, from + 16, to);
}

static void decode_q5_k(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 176, to += LARGE)
		decode_sub_blocks(from, from + 16, from + 48, to);
}

/* Of each half of 128 values, quarter k of 32 has the low or high nibbles of 32 bytes, and two bits of each
 * of 32 others; 16 values share a scale. */
static void decode_q6_k(const unsigned char *from, int64_t blocks, float *to)
{
	for (; blocks > 0; blocks--, from += 210)
		for (int i = 0; i < LARGE; i++) {
			const int half = i / 128, k = i / 32 % 4, j = i % 32;
			const int low = from[64 * half + 32 * (k & 1) + j] >> (k / 2 * 4) & 15;
			const int high = from[128 + 32 * half + j] >> (2 * k) & 3;
			const float scale = f16_at(from + 208) * (float)(signed char)from[192 + i / 16];
			*to++ = scale * (float)((low | high << 4) - 32);
		}
}

#define PLAIN(type, bytes, dtype)                                                                            \
	{                                                                                                    \
		{type, 1, bytes, false, NULL, SMALTI_F32}, true, dtype                                       \
	}
#define CODED(type, values, bytes, decode)                                                                   \
	{                                                                                                    \
		{type, values, bytes, false, decode, SMALTI_F32}, false, SMALTI_F32                          \
	}

static const struct {
	uint32_t number;
	struct smalti_gguf_type type;
} types[] = {
    {0, PLAIN("F32", 4, SMALTI_F32)},
    {1, PLAIN("F16", 2, SMALTI_F16)},
    {2, CODED("Q4_0", SMALL, 18, decode_q4_0)},
    {3, CODED("Q4_1", SMALL, 20, decode_q4_1)},
    {6, CODED("Q5_0", SMALL, 22, decode_q5_0)},
    {7, CODED("Q5_1", SMALL, 24, decode_q5_1)},
    {8, CODED("Q8_0", SMALL, 34, decode_q8_0)},
    {9, CODED("Q8_1", SMALL, 36, NULL)},
    {10, CODED("Q2_K", LARGE, 84, NULL)},
    {11, CODED("Q3_K", LARGE, 110, NULL)},
    {12, CODED("Q4_K", LARGE, 144, decode_q4_k)},
    {13, CODED("Q5_K", LARGE, 176, decode_q5_k)},
    {14, CODED("Q6_K", LARGE, 210, decode_q6_k)},
    {15, CODED("Q8_K", LARGE, 292, NULL)},
    {16, CODED("IQ2_XXS", LARGE, 66, NULL)},
    {17, CODED("IQ2_XS", LARGE, 74, NULL)},
    {18, CODED("IQ3_XXS", LARGE, 98, NULL)},
    {19, CODED("IQ1_S", LARGE, 50, NULL)},
    {20, CODED("IQ4_NL", SMALL, 18, NULL)},
    {21, CODED("IQ3_S", LARGE, 110, NULL)},
    {22, CODED("IQ2_S", LARGE, 82, NULL)},
    {23, CODED("IQ4_XS", LARGE, 136, NULL)},
    {24, CODED("I8", 1, 1, NULL)},
    {25, CODED("I16", 1, 2, NULL)},
    {26, CODED("I32", 1, 4, NULL)},
    {27, CODED("I64", 1, 8, NULL)},
    {28, CODED("F64", 1, 8, NULL)},
    {29, CODED("IQ1_M", LARGE, 56, NULL)},
    {30, PLAIN("BF16", 2, SMALTI_BF16)},
    {34, CODED("TQ1_0", LARGE, 54, NULL)},
    {35, CODED("TQ2_0", LARGE, 66, NULL)},
    {39, CODED("MXFP4", SMALL, 17, NULL)},
};

const struct smalti_gguf_type *smalti_gguf_type(uint32_t number)
{
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (types[i].number == number)
			return &types[i].type;
	return NULL;
}
