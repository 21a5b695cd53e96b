/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tile_memory.h"
#include "host/placeholder.h"
#include "host/pool.h"

#include <starpu.h>

static bool evicting;
static struct smalti_pool *pool; /* StarPU has one set of hooks, without a user pointer */

static void *take(struct smalti_pool *from, int64_t bytes)
{
	enum { ALIGNMENT = 64 };
	void *memory = NULL;
	if (SMALTI_POOLED)
		return smalti_pool_acquire(from, bytes);
	return posix_memalign(&memory, ALIGNMENT, (size_t)bytes) ? NULL : memory;
}

void *smalti_tile_memory_acquire(struct smalti_pool *from, int64_t bytes, struct smalti_error *error)
{
	void *memory = take(from, bytes);
	if (!memory)
		smalti_tile_memory_fail(bytes, error);
	return memory;
}

void smalti_tile_memory_release(struct smalti_pool *to, void *memory)
{
	if (SMALTI_POOLED)
		smalti_pool_release(to, memory);
	else
		free(memory);
}

static int take_tile(unsigned node, void **memory, size_t bytes, int flags)
{
	(void)node, (void)flags;
	*memory = take(pool, (int64_t)bytes);
	if (!*memory && evicting)
		return -ENOMEM;
	if (!*memory)
		*memory = smalti_placeholder_memory((int64_t)bytes);
	return 0;
}

static int give_tile(unsigned node, void *memory, size_t bytes, int flags)
{
	(void)node, (void)bytes, (void)flags;
	if (!smalti_placeholder_has(memory))
		smalti_tile_memory_release(pool, memory);
	return 0;
}

void smalti_tile_memory_open(struct smalti_pool *from, bool evicts)
{
	evicting = evicts;
	pool = from;
#ifdef SMALTI_SIMGRID
	(void)take_tile, (void)give_tile; /* tiles are never touched here, but the pool's heads would be */
#else
	if (starpu_memory_nodes_get_numa_count() == 1) /* with several nodes StarPU places memory itself */
		starpu_malloc_set_hooks(take_tile, give_tile);
#endif
}

void smalti_tile_memory_close(void)
{
	starpu_malloc_set_hooks(NULL, NULL);
	smalti_placeholder_free();
	pool = NULL;
}

bool smalti_tile_memory_is_placeholder(const void *memory)
{
	return smalti_placeholder_has(memory);
}

int smalti_tile_memory_fail(int64_t bytes, struct smalti_error *error)
{
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "the system refused %lld bytes of memory: allow more (ulimit -v, ulimit -d), or make "
	    "fewer items at a time",
	    (long long)bytes);
}
