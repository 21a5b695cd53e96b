/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mt19937.h"

enum { N = SMALTI_MT19937_WORDS, M = 397 };

void smalti_mt19937_seed(struct smalti_mt19937 *mt, uint32_t seed)
{
	mt->state[0] = seed;
	for (uint32_t j = 1; j < N; j++) {
		uint32_t last = mt->state[j - 1];
		mt->state[j] = UINT32_C(1812433253) * (last ^ (last >> 30)) + j;
	}
	mt->used = N;
}

static void twist(uint32_t *state)
{
	for (uint32_t k = 0; k < N; k++) {
		uint32_t after = state[(k + 1) % N];
		uint32_t y = (state[k] & UINT32_C(0x80000000)) | (after & UINT32_C(0x7fffffff));
		state[k] = state[(k + M) % N] ^ (y >> 1) ^ (after & 1 ? UINT32_C(0x9908b0df) : 0);
	}
}

uint32_t smalti_mt19937_next(struct smalti_mt19937 *mt)
{
	if (mt->used == N) {
		twist(mt->state);
		mt->used = 0;
	}
	uint32_t y = mt->state[mt->used++];
	y ^= y >> 11;
	y ^= (y << 7) & UINT32_C(0x9d2c5680);
	y ^= (y << 15) & UINT32_C(0xefc60000);
	return y ^ (y >> 18);
}
