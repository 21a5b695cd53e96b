/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The allocator of tiles. A fresh page costs the kernel more time than most tasks take to fill it, and tiles
 * come and go all the time. So freed memory is kept for later tiles of any size, and returned only when the
 * budget requires it. Any thread may call. */
struct smalti_pool;

/* Whether tiles come from the pool at all: AddressSanitizer watches only memory of malloc(). */
#if defined(__SANITIZE_ADDRESS__)
enum { SMALTI_POOLED = 0 };
#elif defined(__has_feature)
enum { SMALTI_POOLED = !__has_feature(address_sanitizer) };
#else
enum { SMALTI_POOLED = 1 };
#endif

/* Makes a pool. `budget`: bytes that may be resident: in use, kept, and in the kernels' scratch
 * (kernels/scratch.h); 0: no bound. Bytes in use may exceed it: the code that inserts tasks prevents that.
 * Nothing is kept then. */
struct smalti_pool *smalti_pool_new(int64_t budget, struct smalti_error *error);
/* Pins the chunks that are mapped from here on, so that devices copy from and to them directly. StarPU is
 * running. Only for a pool without a budget: pinned pages do not return to the system. */
void smalti_pool_pin(struct smalti_pool *pool);
/* Frees the pool with all its blocks. NULL is allowed. */
void smalti_pool_free(struct smalti_pool *pool);

/* Returns memory aligned to 64, contents undefined; NULL when the system has no more. */
void *smalti_pool_acquire(struct smalti_pool *pool, int64_t bytes);
void smalti_pool_release(struct smalti_pool *pool, void *memory);
/* Returns the most that `bytes` take of it. */
int64_t smalti_pool_block_bytes(int64_t bytes);

struct smalti_pool_state {
	int64_t used, kept; /* resident bytes of taken blocks, and of free ones */
	int64_t peak;       /* largest sum of both since the pool was made */
	int64_t max_used;   /* largest `used` since then, or since smalti_pool_watch() */
};
/* Begins `max_used` anew. */
void smalti_pool_watch(struct smalti_pool *pool);
void smalti_pool_state(struct smalti_pool *pool, struct smalti_pool_state *state);
