/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "host/pool.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SLOTS = 64, ROUNDS = 20000, MEGABYTE = 1 << 20 };

static struct smalti_pool *new_pool(int64_t budget)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_pool *pool = smalti_pool_new(budget, &error);
	if (!pool)
		CU_FAIL_FATAL("no pool");
	return pool;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Blocks of all sizes, each filled with a number of its own: none may ever touch another. */
static void blocks_of(struct smalti_pool *pool)
{
	struct {
		unsigned char *memory;
		int64_t bytes;
		unsigned char mark;
	} slot[SLOTS] = {{NULL, 0, 0}};
	uint64_t random = 1;
	int64_t wrong = 0;
	for (int round = 0; round < ROUNDS; round++) {
		const int i = (int)(next_random(&random) % SLOTS);
		if (slot[i].memory) {
			for (int64_t at = 0; at < slot[i].bytes; at += 61)
				wrong += slot[i].memory[at] != slot[i].mark;
			wrong += slot[i].memory[slot[i].bytes - 1] != slot[i].mark;
			smalti_pool_release(pool, slot[i].memory);
			slot[i].memory = NULL;
			continue;
		}
		slot[i].bytes = 1 + (int64_t)(next_random(&random) % (1u << next_random(&random) % 19));
		slot[i].mark = (unsigned char)round;
		slot[i].memory = smalti_pool_acquire(pool, slot[i].bytes);
		CU_ASSERT_PTR_NOT_NULL_FATAL(slot[i].memory);
		wrong += (uintptr_t)slot[i].memory % 64 != 0;
		memset(slot[i].memory, slot[i].mark, (size_t)slot[i].bytes);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	for (int i = 0; i < SLOTS; i++)
		if (slot[i].memory)
			smalti_pool_release(pool, slot[i].memory);
	struct smalti_pool_state state;
	smalti_pool_state(pool, &state);
	CU_ASSERT_EQUAL(state.used, 0);
	CU_ASSERT(state.kept <= state.peak);
	smalti_pool_free(pool);
}

static void blocks_do_not_overlap(void)
{
	blocks_of(new_pool(0));
}

/* Where there is no device to pin for, they are as others are. */
static void pinned_blocks(void)
{
	struct smalti_pool *pool = new_pool(0);
	smalti_pool_pin(pool);
	blocks_of(pool);
}

/* What was freed serves other sizes: neighbours grow together. */
static void freed_memory_serves_again(void)
{
	void *parts[8];
	struct smalti_pool_state state;
	struct smalti_pool *pool = new_pool(0);
	for (int i = 0; i < 8; i++)
		parts[i] = smalti_pool_acquire(pool, MEGABYTE);
	smalti_pool_state(pool, &state);
	const int64_t peak = state.peak;
	static const int order[] = {1, 3, 2, 0, 7, 5, 6, 4};
	for (int i = 0; i < 8; i++)
		smalti_pool_release(pool, parts[order[i]]);
	void *whole = smalti_pool_acquire(pool, 8 * MEGABYTE);
	smalti_pool_state(pool, &state);
	CU_ASSERT_EQUAL(state.peak, peak);
	smalti_pool_release(pool, whole);
	smalti_pool_free(pool);
}

static void kept_memory_stays_within_the_budget(void)
{
	enum { BUDGET = 10 * MEGABYTE };
	struct smalti_pool_state state;
	struct smalti_pool *pool = new_pool(BUDGET);
	for (int round = 0; round < 100; round++) {
		void *a = smalti_pool_acquire(pool, (1 + round % 5) * MEGABYTE);
		void *b = smalti_pool_acquire(pool, 3 * MEGABYTE + round);
		CU_ASSERT_PTR_NOT_NULL_FATAL(a);
		CU_ASSERT_PTR_NOT_NULL_FATAL(b);
		smalti_pool_release(pool, round % 2 ? a : b);
		smalti_pool_release(pool, round % 2 ? b : a);
	}
	smalti_pool_state(pool, &state);
	CU_ASSERT(state.peak <= BUDGET + MEGABYTE);
	void *more =
	    smalti_pool_acquire(pool, 2 * BUDGET); /* in use beyond the budget: nothing is kept beside it */
	CU_ASSERT_PTR_NOT_NULL(more);
	smalti_pool_state(pool, &state);
	CU_ASSERT_EQUAL(state.kept, 0);
	smalti_pool_release(pool, more);
	smalti_pool_state(pool, &state);
	CU_ASSERT_EQUAL(state.used + state.kept, 0);
	smalti_pool_free(pool);
}

/* Little address space is enough for little, also when it has been cut into pieces of other sizes. */
static void a_limit_leaves_what_fits(void)
{
	enum { LEFT = 300 * MEGABYTE, ALL = 4 * LEFT / MEGABYTE };
	static void *block[ALL];
	struct rlimit before;
	long pages = 0;
	FILE *file = SMALTI_POOLED ? fopen("/proc/self/statm", "r") : NULL;
	if (!file)
		return;
	CU_ASSERT_EQUAL(fscanf(file, "%ld", &pages), 1);
	fclose(file);
	getrlimit(RLIMIT_AS, &before);
	const struct rlimit small = {(rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + LEFT, before.rlim_max};
	struct smalti_pool *pool = new_pool(0);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_AS, &small), 0);
	for (int megabytes = 1; megabytes <= 64; megabytes *= 4) {
		int count = 0;
		while (count < ALL &&
		       (block[count] = smalti_pool_acquire(pool, (int64_t)megabytes * MEGABYTE)))
			count++;
		CU_ASSERT(count * megabytes >= 64 && count < ALL);
		while (count > 0)
			smalti_pool_release(pool, block[--count]);
	}
	setrlimit(RLIMIT_AS, &before);
	smalti_pool_free(pool);
}

static void what_cannot_be_had_is_refused(void)
{
	struct smalti_pool *pool = new_pool(0);
	CU_ASSERT_PTR_NULL(smalti_pool_acquire(pool, INT64_MAX));
	CU_ASSERT_PTR_NULL(smalti_pool_acquire(pool, INT64_MAX / 2));
	smalti_pool_free(pool);
}

static const struct test tests[] = {
    {"blocks do not overlap", blocks_do_not_overlap},
    {"pinned blocks", pinned_blocks},
    {"freed memory serves again", freed_memory_serves_again},
    {"kept memory stays within the budget", kept_memory_stays_within_the_budget},
    {"a limit leaves what fits", a_limit_leaves_what_fits},
    {"what cannot be had is refused", what_cannot_be_had_is_refused},
};
TEST_MAIN("pool", tests)
