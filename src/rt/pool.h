/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Where tiles get their memory. A fresh page costs the kernel more time than most tasks take to fill it, and
 * tiles come and go all the time: so what is freed is kept for the next one, of whatever size, and given back
 * only when the budget asks for it. Any thread may call. */
struct smalti_pool;

/* Whether tiles come from the pool at all: AddressSanitizer watches what comes from malloc(). */
#if defined(__SANITIZE_ADDRESS__)
enum { SMALTI_POOLED = 0 };
#elif defined(__has_feature)
enum { SMALTI_POOLED = !__has_feature(address_sanitizer) };
#else
enum { SMALTI_POOLED = 1 };
#endif

/* `budget`: bytes that may be resident: in use, kept, and in the kernels' scratch (kernels/scratch.h); 0: no
 * bound. Bytes in use may exceed it: who inserts tasks sees to that; nothing is kept then. */
struct smalti_pool *smalti_pool_new(int64_t budget, struct smalti_error *error);
/* When StarPU runs: has devices copy from and to the memory that is not there yet without anybody's help. For
 * a pool without a budget: pages that are pinned do not go back to the system. */
void smalti_pool_pin(struct smalti_pool *pool);
/* With all its blocks. NULL is allowed. */
void smalti_pool_free(struct smalti_pool *pool);

/* Aligned to 64, contents undefined; NULL when the system has no more. */
void *smalti_pool_take(struct smalti_pool *pool, int64_t bytes);
void smalti_pool_give(struct smalti_pool *pool, void *memory);
/* Most that `bytes` take of it. */
int64_t smalti_pool_block_bytes(int64_t bytes);

struct smalti_pool_state {
	int64_t used, kept; /* bytes resident in blocks that are taken, and in others */
	int64_t peak;       /* largest sum of both since the pool was made */
	int64_t most_used;  /* largest `used` since then */
};
void smalti_pool_state(struct smalti_pool *pool, struct smalti_pool_state *state);
