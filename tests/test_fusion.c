/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that become one task: the same results, on tiles that nobody else sees.
 */
#include "codelets/codelets.h"
#include "driver.h"
#include "harness.h"
#include "host/pool.h"
#include "rt/session.h"
#include "rt/task.h"
#include "rt/throttle.h"
#include "smalti/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_OF_VALUES = 37, BYTES_OF_TILE = COUNT_OF_VALUES * 4 };

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

static int refuse(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)user, (void)count, (void)values;
	return smalti_fail(error, SMALTI_EIO, "refused on purpose");
}

static struct smalti_tile *new_tile(struct smalti_task_group *task_group)
{
	return smalti_tile_new(task_group, 1, BYTES_OF_TILE);
}

static void begin(struct smalti_task_group *task_group, const char *name)
{
	smalti_fuse_begin(task_group,
			  &(const struct smalti_fusion){name, SMALTI_GRAIN_BLOCK, 0, SMALTI_ANYWHERE});
}

/* result = silu(…silu(x) + x…) + x, `length` times; with regions of `fused` links each (0: none). */
static void chain(struct smalti_task_group *task_group, const float *x, int length, int fused, float *result)
{
	struct smalti_tile *row = smalti_tile_upload(task_group, 1, BYTES_OF_TILE, x),
			   *y = new_tile(task_group);
	smalti_insert(copy, task_group, (.x = row, .y = y), .bytes = BYTES_OF_TILE);
	for (int i = 0; i < length; i++) {
		if (fused && i % fused == 0)
			begin(task_group, "links");
		struct smalti_tile *z = new_tile(task_group);
		smalti_insert(silu, task_group, (.x = y, .y = z), .count = COUNT_OF_VALUES);
		smalti_tile_release(y);
		smalti_insert(add_row, task_group, (.row = row, .y = z), .rows = 1, .dim = COUNT_OF_VALUES);
		y = z;
		if (fused && (i % fused == fused - 1 || i == length - 1))
			smalti_fuse_end(task_group);
	}
	smalti_insert(deliver, task_group, (.x = y), .count = COUNT_OF_VALUES, .sink = keep, .user = result);
	smalti_tile_release(y);
	smalti_tile_release(row);
}

static void run_chain(struct smalti_session *session, int length, int fused, float *result)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	float x[COUNT_OF_VALUES];
	test_fill(x, COUNT_OF_VALUES, 0.3, 0.1);
	memset(result, 0, BYTES_OF_TILE);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "chain", 0, &error);
	chain(task_group, x, length, fused, result);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "chain");
	smalti_task_group_free(task_group);
}

/* Regions of one link, of some, of more than a task may have, and none. */
static void same_results(struct smalti_session *session)
{
	static const int lengths[] = {1, 2, 7, 150}, sizes[] = {1, 2, 3, 100, 1000};
	for (int i = 0; i < COUNT(lengths); i++)
		for (int k = 0; k < COUNT(sizes); k++) {
			float apart[COUNT_OF_VALUES], fused[COUNT_OF_VALUES];
			const uint64_t before = session->sequence;
			run_chain(session, lengths[i], 0, apart);
			CHECK(session->sequence != before, "insertions are recorded");
			run_chain(session, lengths[i], sizes[k], fused);
			CHECK(memcmp(apart, fused, sizeof(apart)) == 0, "the same bits");
		}
}

/* A region counts as one task, and one in it not at all. */
static void one_task(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "one", 0, &error);
	struct smalti_task_group_progress progress;
	struct smalti_tile *x = smalti_tile_upload(task_group, 1, BYTES_OF_TILE,
						   (const float[COUNT_OF_VALUES]){1}),
			   *y = new_tile(task_group);
	smalti_session_sleep(session);
	begin(task_group, "outer");
	for (int i = 0; i < 5; i++) {
		begin(task_group, "inner");
		smalti_insert(copy, task_group, (.x = x, .y = y), .bytes = BYTES_OF_TILE);
		smalti_fuse_end(task_group);
	}
	smalti_task_group_progress(task_group, &progress);
	CHECK(progress.left == 0, "nothing is submitted before the end");
	smalti_fuse_end(task_group);
	smalti_task_group_progress(task_group, &progress);
	CHECK(progress.left == 1, "one task");
	smalti_session_wake(session);
	smalti_tile_release(x);
	smalti_tile_release(y);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "one task");
	smalti_task_group_free(task_group);
}

/* What lives in the task is given back, also when an operation fails between the others. */
static void failures(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_pool_state before, after;
	smalti_pool_state(session->pool, &before);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "failing", 0, &error);
	struct smalti_tile *x = smalti_tile_upload(task_group, 1, BYTES_OF_TILE,
						   (const float[COUNT_OF_VALUES]){1}),
			   *y = new_tile(task_group), *z = new_tile(task_group);
	float unused[COUNT_OF_VALUES] = {0};
	begin(task_group, "failing");
	smalti_insert(silu, task_group, (.x = x, .y = y), .count = COUNT_OF_VALUES);
	smalti_insert(deliver, task_group, (.x = y), .count = COUNT_OF_VALUES, .sink = refuse);
	smalti_insert(silu, task_group, (.x = y, .y = z), .count = COUNT_OF_VALUES);
	smalti_insert(deliver, task_group, (.x = z), .count = COUNT_OF_VALUES, .sink = keep, .user = unused);
	smalti_tile_release(y);
	smalti_tile_release(z);
	smalti_tile_release(x);
	smalti_fuse_end(task_group);
	smalti_task_group_wait(task_group);
	FAILS(smalti_task_group_status(task_group, &error), &error, SMALTI_EIO, "failing", "on purpose");
	CHECK(unused[0] == 0, "nothing runs behind a failure");
	smalti_task_group_free(task_group);
	smalti_pool_state(session->pool, &after);
	CHECK(after.used <= before.used, "nothing is kept");
}

static void fused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.cpus = 3};
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	if (!session)
		return;
	same_results(session);
	one_task(session);
	failures(session);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

/* How many tasks operations at these places become. */
static int64_t tasks_of(struct smalti_session *session, const struct smalti_fusion *fusion, const int *places,
			int count)
{
	static const float values[COUNT_OF_VALUES] = {1};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "grain", 0, &error);
	struct smalti_task_group_progress progress;
	struct smalti_tile *x = smalti_tile_upload(task_group, 1, BYTES_OF_TILE, values),
			   *y = new_tile(task_group);
	smalti_session_sleep(session);
	smalti_fuse_begin(task_group, fusion);
	for (int i = 0; i < count; i++) {
		smalti_task_group_place(task_group, places[i]);
		smalti_insert(copy, task_group, (.x = x, .y = y), .bytes = BYTES_OF_TILE);
	}
	smalti_fuse_end(task_group);
	smalti_task_group_progress(task_group, &progress);
	smalti_session_wake(session);
	smalti_tile_release(x);
	smalti_tile_release(y);
	smalti_task_group_free(task_group);
	return progress.left;
}

/* What is small enough to be one task follows from how fast the place is. */
static void small_enough(struct smalti_session *session)
{
	static const int places[] = {SMALTI_ANYWHERE, SMALTI_ANYWHERE};
	static const struct {
		double flops;
		int place;
		int64_t tasks;
	} cases[] = {
	    {1e8, 0, 1},
	    {3e8, 0, 2},
	    {1e8, 1, 1},
	    {3e8, 1, 1},
	    {1.9e10, 1, 1},
	    {2.1e10, 1, 2},
	    {3e8, SMALTI_ANYWHERE, 1},
	    {2.1e10, SMALTI_ANYWHERE, 2},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		const struct smalti_fusion fusion = {"copies", SMALTI_GRAIN_HALF_BLOCK, cases[i].flops,
						     cases[i].place};
		char what[64];
		snprintf(what, sizeof(what), "%g operations at %d", cases[i].flops, cases[i].place);
		CHECK(tasks_of(session, &fusion, places, COUNT(places)) == cases[i].tasks, what);
	}
}

/* A task is at one place. */
static void one_place(struct smalti_session *session)
{
	static const struct {
		int places[5];
		int64_t tasks;
	} cases[] = {
	    {{0, 0, 0, 0, 0}, 1},
	    {{1, 1, 1, 1, 1}, 1},
	    {{0, 1, 1, 1, 0}, 3},
	    {{0, 1, 0, 1, 0}, 5},
	    {{SMALTI_ANYWHERE, SMALTI_ANYWHERE, 1, SMALTI_ANYWHERE, 0}, 2},
	};
	const struct smalti_fusion fusion = {"copies", SMALTI_GRAIN_BLOCK, 0, SMALTI_ANYWHERE};
	for (int i = 0; i < COUNT(cases); i++) {
		char what[64];
		snprintf(what, sizeof(what), "places, case %d", i);
		CHECK(tasks_of(session, &fusion, cases[i].places, COUNT(cases[i].places)) == cases[i].tasks,
		      what);
	}
}

static void grains(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options = {
	    .cpus = 1, .policy = "dmdas"}; /* else CPUs beside a large GPU do nothing */
	test_ask_for(&options, 1);
	struct smalti_session *session = smalti_session_open(&options, &error);
	if (!session) {
		printf("skipped: %s ", error.message);
		return;
	}
	for (int worker = 0; worker < session->workers; worker++)
		if (smalti_session_device(session, worker))
			session->speeds[worker] = 5e12;
	small_enough(session);
	one_place(session);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static const struct test tests[] = {
    {"fused tasks", fused},
    {"grain by speed", grains},
};

TEST_PROGRAM()
{
	return test_main("fusion", tests, COUNT(tests));
}
