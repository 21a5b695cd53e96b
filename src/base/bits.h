/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SMALTI_BITS = 192, SMALTI_BITS_WORDS = SMALTI_BITS / 64 };

/* A set of numbers below SMALTI_BITS; all 0: it is empty. */
struct smalti_bits {
	uint64_t word[SMALTI_BITS_WORDS];
};

static inline bool smalti_bits_has(const struct smalti_bits *bits, int number)
{
	return bits->word[number / 64] >> number % 64 & 1;
}

static inline void smalti_bits_add(struct smalti_bits *bits, int number)
{
	bits->word[number / 64] |= UINT64_C(1) << number % 64;
}

static inline bool smalti_bits_any(const struct smalti_bits *bits)
{
	uint64_t any = 0;
	for (int i = 0; i < SMALTI_BITS_WORDS; i++)
		any |= bits->word[i];
	return any;
}

static inline struct smalti_bits smalti_bits_one(int number)
{
	struct smalti_bits bits = {{0}};
	smalti_bits_add(&bits, number);
	return bits;
}

static inline struct smalti_bits smalti_bits_all(void)
{
	struct smalti_bits bits;
	for (int i = 0; i < SMALTI_BITS_WORDS; i++)
		bits.word[i] = UINT64_MAX;
	return bits;
}
