/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BASE_MT19937_H
#define SMALTI_BASE_MT19937_H

#include <stdint.h>

#define SMALTI_MT19937_WORDS 624

/* Mersenne Twister of Matsumoto and Nishimura, 32-bit; the numbers of C++'s std::mt19937. Plain
 * data: a copy is an independent generator that continues the same stream. */
struct smalti_mt19937 {
	uint32_t state[SMALTI_MT19937_WORDS];
	uint32_t used; /* words of `state` that were given out; all of them: twist first */
};

void smalti_mt19937_seed(struct smalti_mt19937 *mt, uint32_t seed);
uint32_t smalti_mt19937_next(struct smalti_mt19937 *mt);

#endif
