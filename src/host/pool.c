/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pool.h"
#include "kernels/scratch.h"

#include <starpu.h>
#include <sys/mman.h>

/* A segregated fit: free blocks are in bins by size, eight for each power of two. Freed blocks are joined
 * with free neighbours. Blocks are cut from large mapped chunks, whose fresh end is touched only when no free
 * block fits. */
enum {
	ALIGNMENT = 64,
	BINS = 8 * 64,
	HUGE_PAGE = 1 << 21,
	CHUNK = 1 << 28,    /* of address space: a page comes when it is touched */
	HEADROOM = 1 << 27, /* for everything but tiles: StarPU ends the program when it gets nothing */
};

struct chunk {
	char *fresh, *end; /* from which no block was cut yet */
	struct block *last;
	struct chunk *next;
	int64_t bytes;
	bool pinned;
};

enum state { TAKEN, KEPT, DROPPED }; /* DROPPED: free, and the system has its pages */

struct block {
	int64_t bytes; /* includes this head */
	struct block *before;
	struct chunk *chunk;
	struct block *next, *previous; /* in its bin */
	enum state state;
};

enum { HEAD = ALIGNMENT };
_Static_assert(sizeof(struct block) <= HEAD && sizeof(struct chunk) <= HEAD, "heads keep the alignment");

struct smalti_pool {
	pthread_mutex_t mutex; /* guards what follows */
	struct chunk *chunks;
	struct block *bins[BINS];
	int64_t budget, page;
	bool pins;
	struct smalti_pool_state state;
};

static int bin_of(int64_t bytes)
{
	const int power = 63 - __builtin_clzll((unsigned long long)bytes);
	return power * 8 + (int)(bytes >> (power - 3) & 7);
}

static void link_block(struct smalti_pool *pool, struct block *block, enum state state)
{
	struct block **bin = &pool->bins[bin_of(block->bytes)];
	block->state = state;
	block->previous = NULL;
	block->next = *bin;
	if (block->next)
		block->next->previous = block;
	*bin = block;
	if (state == KEPT)
		pool->state.kept += block->bytes;
}

static void unlink_block(struct smalti_pool *pool, struct block *block)
{
	if (block->previous)
		block->previous->next = block->next;
	else
		pool->bins[bin_of(block->bytes)] = block->next;
	if (block->next)
		block->next->previous = block->previous;
	if (block->state == KEPT)
		pool->state.kept -= block->bytes;
}

static struct block *after(const struct block *block)
{
	char *end = (char *)block + block->bytes;
	return end < block->chunk->fresh ? (struct block *)(void *)end : NULL;
}

/* Finds the smallest fitting block of the size's bin, else any block of the next larger bin that has one. */
static struct block *find(const struct smalti_pool *pool, int64_t bytes)
{
	const int own = bin_of(bytes);
	struct block *best = NULL;
	for (struct block *block = pool->bins[own]; block && !(best && best->bytes == bytes);
	     block = block->next)
		if (block->bytes >= bytes && (!best || block->bytes < best->bytes))
			best = block;
	for (int bin = own + 1; !best && bin < BINS; bin++)
		best = pool->bins[bin];
	return best;
}

static struct block *begin_block(struct chunk *chunk, void *at, int64_t bytes, struct block *before)
{
	struct block *block = at;
	block->bytes = bytes;
	block->before = before;
	block->chunk = chunk;
	return block;
}

/* Makes a block of its own of what a free block has beyond `bytes`. */
static void split(struct smalti_pool *pool, struct block *block, int64_t bytes)
{
	const int64_t rest = block->bytes - bytes;
	if (rest < 2 * HEAD)
		return;
	struct block *following = after(block);
	block->bytes = bytes;
	struct block *tail = begin_block(block->chunk, (char *)block + bytes, rest, block);
	if (following)
		following->before = tail;
	else
		block->chunk->last = tail;
	link_block(pool, tail, block->state);
}

/* Maps memory; NULL unless `spare` more bytes could be mapped, too. */
static void *map(int64_t bytes, int64_t spare)
{
	char *memory = mmap(NULL, (size_t)(bytes + spare), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	munmap(memory + bytes, (size_t)spare);
	madvise(memory, (size_t)bytes, MADV_HUGEPAGE); /* fewer page faults; a refusal does not matter */
	return memory;
}

/* Adds a chunk: under a limit (ulimit -v) at most a quarter of what is left, unless the block needs more. */
static struct chunk *add_chunk(struct smalti_pool *pool, int64_t bytes)
{
	const int64_t min = smalti_round_up(bytes + HEAD, HUGE_PAGE);
	int64_t size = CHUNK;
	struct chunk *chunk = NULL;
	while (size > min && !(chunk = map(size, 3 * size + HEADROOM)))
		size /= 2;
	if (!chunk && !(chunk = map(size = min, HEADROOM)))
		return NULL;
	char *memory = (char *)chunk;
	*chunk =
	    (struct chunk){.fresh = memory + HEAD, .end = memory + size, .bytes = size, .next = pool->chunks};
	chunk->pinned = pool->pins && starpu_memory_pin(chunk, (size_t)size) == 0;
	pool->chunks = chunk;
	return chunk;
}

static void unmap(struct chunk *chunk)
{
	if (chunk->pinned)
		starpu_memory_unpin(chunk, (size_t)chunk->bytes);
	munmap(chunk, (size_t)chunk->bytes);
}

/* Returns chunks without a used block to the system, addresses included. */
static void drop_chunks(struct smalti_pool *pool)
{
	for (struct chunk **at = &pool->chunks; *at;) {
		struct chunk *chunk = *at;
		struct block *only = chunk->last;
		if (only && (only->before || only->state == TAKEN)) {
			at = &chunk->next;
			continue;
		}
		if (only)
			unlink_block(pool, only);
		*at = chunk->next;
		unmap(chunk);
	}
}

static struct block *cut(struct smalti_pool *pool, int64_t bytes)
{
	struct chunk *chunk = pool->chunks;
	while (chunk && chunk->end - chunk->fresh < bytes)
		chunk = chunk->next;
	if (!chunk && !(chunk = add_chunk(pool, bytes))) {
		drop_chunks(pool);
		if (!(chunk = add_chunk(pool, bytes)))
			return NULL;
	}
	struct block *block = begin_block(chunk, chunk->fresh, bytes, chunk->last);
	chunk->last = block;
	chunk->fresh += bytes;
	return block;
}

/* Returns the whole pages of every free block to the system. */
static void drop_kept(struct smalti_pool *pool)
{
	for (const struct chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
		for (struct block *block = chunk->last; block; block = block->before) {
			if (block->state != KEPT)
				continue;
			const int64_t begin = smalti_round_up((intptr_t)block + HEAD, pool->page);
			const int64_t end = ((intptr_t)block + block->bytes) / pool->page * pool->page;
			if (begin < end)
				madvise((void *)(intptr_t)begin, (size_t)(end - begin), MADV_DONTNEED);
			block->state = DROPPED;
			pool->state.kept -= block->bytes;
		}
	}
}

static bool over_budget(const struct smalti_pool *pool, int64_t more)
{
	const int64_t held = pool->state.used + pool->state.kept + smalti_scratch_held();
	return pool->budget && pool->state.kept && held + more > pool->budget;
}

static struct block *take(struct smalti_pool *pool, int64_t bytes)
{
	struct block *block = find(pool, bytes);
	if (over_budget(pool, block && block->state == KEPT ? 0 : bytes))
		drop_kept(pool);
	if (!block)
		return cut(pool, bytes);
	unlink_block(pool, block);
	split(pool, block, bytes);
	return block;
}

/* Includes a rest that is too small for a block of its own. */
int64_t smalti_pool_block_bytes(int64_t bytes)
{
	return smalti_round_up(bytes + HEAD, ALIGNMENT) + ALIGNMENT;
}

void *smalti_pool_acquire(struct smalti_pool *pool, int64_t bytes)
{
	if (bytes > INT64_MAX - 8LL * CHUNK)
		return NULL;
	struct smalti_pool_state *state = &pool->state;
	HOLD_MUTEX(&pool->mutex);
	struct block *block = take(pool, smalti_round_up(bytes + HEAD, ALIGNMENT));
	if (!block)
		return NULL;
	block->state = TAKEN;
	state->used += block->bytes;
	state->peak = smalti_max(state->peak, state->used + state->kept);
	state->max_used = smalti_max(state->max_used, state->used);
	return (char *)block + HEAD;
}

/* Joins `second` to `first`, which it follows directly; neither is in a bin. */
static void join(struct block *first, struct block *second)
{
	struct block *following = after(second);
	first->bytes += second->bytes;
	if (following)
		following->before = first;
	else
		first->chunk->last = first;
}

void smalti_pool_release(struct smalti_pool *pool, void *memory)
{
	struct block *block = (struct block *)(void *)((char *)memory - HEAD);
	HOLD_MUTEX(&pool->mutex);
	pool->state.used -= block->bytes;
	struct block *following = after(block);
	if (following && following->state != TAKEN) {
		unlink_block(pool, following);
		join(block, following);
	}
	struct block *before = block->before;
	if (before && before->state != TAKEN) {
		unlink_block(pool, before);
		join(before, block);
		block = before;
	}
	link_block(pool, block, KEPT);
	if (over_budget(pool, 0))
		drop_kept(pool);
}

struct smalti_pool *smalti_pool_new(int64_t budget, struct smalti_error *error)
{
	struct smalti_pool *pool = smalti_calloc(1, sizeof(*pool), error);
	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->mutex, NULL);
	pool->budget = budget;
	pool->page = sysconf(_SC_PAGESIZE);
	return pool;
}

void smalti_pool_pin(struct smalti_pool *pool)
{
	pool->pins = true;
}

void smalti_pool_free(struct smalti_pool *pool)
{
	if (!pool)
		return;
	for (struct chunk *chunk = pool->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		unmap(chunk);
	}
	pthread_mutex_destroy(&pool->mutex);
	free(pool);
}

void smalti_pool_watch(struct smalti_pool *pool)
{
	HOLD_MUTEX(&pool->mutex);
	pool->state.max_used = pool->state.used;
}

void smalti_pool_state(struct smalti_pool *pool, struct smalti_pool_state *state)
{
	HOLD_MUTEX(&pool->mutex);
	*state = pool->state;
}
