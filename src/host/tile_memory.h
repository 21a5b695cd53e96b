/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

struct smalti_pool;

/* Has StarPU take the memory of tiles from this pool; after starpu_init() and before the first tile. With
 * `evicts` StarPU may move tiles elsewhere to make room. */
void smalti_tile_memory_open(struct smalti_pool *pool, bool evicts);
/* Closes it after starpu_shutdown(). */
void smalti_tile_memory_close(void);

/* Returns memory aligned to 64, contents undefined; NULL with an error when the system has no more. */
void *smalti_tile_memory_acquire(struct smalti_pool *from, int64_t bytes, struct smalti_error *error);
void smalti_tile_memory_release(struct smalti_pool *to, void *memory);

/* Tells whether a tile has placeholder memory that holds nothing (host/placeholder.h), because StarPU asks
 * again for ever without memory. Code that is about to access it asks here first, and fails. */
bool smalti_tile_memory_is_placeholder(const void *memory);

/* Fails with SMALTI_ENOMEM for a tile of `bytes` bytes. */
int smalti_tile_memory_fail(int64_t bytes, struct smalti_error *error);
