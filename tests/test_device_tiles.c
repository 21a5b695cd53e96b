/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles on devices: more than their memories hold, too large ones, and when they come there.
 */
#include "codelets/codelets.h"
#include "device_session.h"
#include "rt/device_use.h"
#include "rt/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starpu.h>

enum { FLOATS = 1 << 20, TILES = 24 };

static void fill(float *x, int tile)
{
	for (int i = 0; i < FLOATS; i++)
		x[i] = (float)((i + tile) % 100) / 50.f - 1.f;
}

static double error_of(const float *y, int tile)
{
	double worst = 0;
	for (int i = 0; i < FLOATS; i++) {
		const double x = (double)((float)((i + tile) % 100) / 50.f - 1.f), z = x / (1 + exp(-x));
		const double off = fabs((double)y[i] - z / (1 + exp(-z)));
		worst = off <= worst ? worst : off;
	}
	return worst;
}

static void check_tile(struct smalti_tile *tile, int number)
{
	starpu_data_handle_t handle = smalti_tile_handle(tile);
	CHECK(starpu_data_acquire(handle, STARPU_R) == 0, "acquired");
	CHECK(error_of(starpu_data_get_local_ptr(handle), number) < 1e-6, "values");
	starpu_data_release(handle);
}

/* Twice over tiles that the devices' memory does not hold together. */
static void pass_over(struct smalti_task_group *task_group)
{
	struct smalti_tile *x[TILES], *y[TILES];
	static float values[FLOATS];
	for (int i = 0; i < TILES; i++) {
		fill(values, i);
		x[i] = smalti_tile_upload(task_group, 1, (int64_t)sizeof(values), values);
		y[i] = smalti_tile_new(task_group, 1, FLOATS * (int64_t)sizeof(float));
		smalti_insert(silu, task_group, (.x = x[i], .y = y[i]), .count = FLOATS);
	}
	for (int i = 0; i < TILES; i++)
		smalti_insert(silu, task_group, (.x = y[i], .y = x[i]), .count = FLOATS);
	for (int i = 0; i < TILES; i++) {
		check_tile(x[i], i);
		smalti_tile_release(x[i]);
		smalti_tile_release(y[i]);
	}
}

static void little_memory(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = test_open_devices("little memory", "1", 2, "64", "dmda");
	if (!session)
		return;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "memory", 0, &error);
	pass_over(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "tasks");
	smalti_task_group_free(task_group);
	test_close_devices(session);
}

static const struct {
	const char *cpus;
	bool alone, keeps;
	enum smalti_code code;
	const char *word;
} large[] = {{"0", false, false, SMALTI_ENODEV, "no worker"},
	     {"1", false, true, SMALTI_OK, NULL},
	     {"1", true, false, SMALTI_OK, NULL},
	     {"1", true, true, SMALTI_ENOMEM,
	      "'silu' of large needs 50331648 bytes in one task, but 8388608 of its memory are for "
	      "one: raise"}};

/* Leaves a tile that no device has room for to the CPU; without a CPU, or where devices work alone and the
 * task group keeps to them, it is nobody's. */
static void too_large(void)
{
	for (int i = 0; i < COUNT(large); i++) {
		const int64_t count = (int64_t)6 << 20;
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_session *session = test_open_devices("too large", large[i].cpus, 1, "32", NULL);
		if (!session)
			return;
		session->devices_alone = large[i].alone;
		struct smalti_task_group *task_group = smalti_task_group_new(session, "large", 0, &error);
		task_group->keeps_to_devices = large[i].keeps;
		float *zeros = calloc((size_t)count, sizeof(*zeros));
		struct smalti_tile *x =
		    smalti_tile_upload(task_group, 1, count * (int64_t)sizeof(*zeros), zeros);
		struct smalti_tile *y = smalti_tile_new(task_group, 1, count * (int64_t)sizeof(*zeros));
		smalti_insert(silu, task_group, (.x = x, .y = y), .count = count);
		smalti_task_group_wait(task_group);
		const struct smalti_too_large found = smalti_devices_too_large(session);
		CHECK(found.tasks == 1 && found.bytes == 2 * count * (int64_t)sizeof(*zeros) &&
			  strcmp(found.name, "silu") == 0,
		      "what was too large is told");
		if (large[i].code == SMALTI_OK)
			SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "on the CPU");
		else
			FAILS(smalti_task_group_status(task_group, &error), &error, large[i].code, "nowhere",
			      large[i].word);
		free(zeros);
		smalti_tile_release(x);
		smalti_tile_release(y);
		smalti_task_group_free(task_group);
		test_close_devices(session);
	}
}

static bool is_at(struct smalti_tile *tile, int node)
{
	int allocated, valid, requested;
	starpu_data_query_status(smalti_tile_handle(tile), node, &allocated, &valid, &requested);
	return valid;
}

static struct smalti_tile *ones_at(struct smalti_task_group *task_group, int owner)
{
	float ones[64];
	for (int i = 0; i < COUNT(ones); i++)
		ones[i] = 1;
	struct smalti_tile *tile = smalti_tile_upload(task_group, 1, (int64_t)sizeof(ones), ones);
	if (tile)
		tile->owner = owner;
	return tile;
}

/* What a task reads comes to its device while the task waits for something else, whatever the policy. */
static void early_inputs(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = test_open_devices("early inputs", "1", 1, NULL, "lws");
	if (!session)
		return;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "inputs", 0, &error);
	struct smalti_tile *x = ones_at(task_group, 0), *y = ones_at(task_group, 0),
			   *late = ones_at(task_group, 1);
	smalti_insert(add, task_group, (.x = x, .y = y), .count = 64);
	starpu_data_acquire(smalti_tile_handle(late), STARPU_RW);
	smalti_insert(add, task_group, (.x = y, .y = late), .count = 64);
	for (int i = 0; i < 10000 && !is_at(y, 1); i++)
		usleep(1000);
	CHECK(is_at(y, 1), "the input is there");
	starpu_data_release(smalti_tile_handle(late));
	starpu_data_acquire(smalti_tile_handle(late), STARPU_R);
	const float *sum = starpu_data_get_local_ptr(smalti_tile_handle(late));
	CHECK(sum[0] == 3 && sum[63] == 3, "sum");
	starpu_data_release(smalti_tile_handle(late));
	smalti_tile_release(x);
	smalti_tile_release(y);
	smalti_tile_release(late);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "inputs");
	smalti_task_group_free(task_group);
	test_close_devices(session);
}

/* A tile that a task of the CPU only waits for stays on the device that wrote it. */
static void waited_for(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = test_open_devices("waited for", "1", 1, NULL, "lws");
	if (!session)
		return;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "behind", 0, &error);
	struct smalti_tile *x = ones_at(task_group, 0), *y = ones_at(task_group, 0),
			   *there = ones_at(task_group, 1);
	smalti_insert(add, task_group, (.x = x, .y = there), .count = 64);
	smalti_task_group_behind(task_group, there);
	smalti_insert(silu, task_group, (.x = x, .y = y), .count = 64);
	smalti_task_group_behind(task_group, NULL);
	starpu_data_acquire(smalti_tile_handle(y), STARPU_R);
	CHECK(is_at(there, 1) && !is_at(there, 0), "it stays");
	starpu_data_release(smalti_tile_handle(y));
	smalti_tile_release(x);
	smalti_tile_release(y);
	smalti_tile_release(there);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "behind");
	smalti_task_group_free(task_group);
	test_close_devices(session);
}

#ifdef STARPU_TRANSFER_CALLBACKS /* a StarPU of scripts/starpu: others end the program, or take more pieces  \
				  */
/* CUDA's memory is taken in pieces that hold several tiles of 5 MiB each. */
static void pieces(void)
{
	enum { COUNT_OF_TILES = 9, BYTES = 5 << 20 };
	static char values[BYTES];
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *before = getenv("STARPU_SUBALLOCATOR");
	char *kept = before ? strdup(before) : NULL;
	if (!test_cuda()) {
		test_skip("OpenCL's memory is not taken in pieces");
		return;
	}
	setenv("STARPU_SUBALLOCATOR", "1", 1); /* where memory is little, too */
	struct smalti_session *session = test_open_devices("pieces", "1", 1, NULL, NULL);
	if (kept)
		setenv("STARPU_SUBALLOCATOR", kept, 1);
	else
		unsetenv("STARPU_SUBALLOCATOR");
	free(kept);
	if (!session)
		return;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "pieces", 0, &error);
	struct smalti_tile *tiles[COUNT_OF_TILES];
	int taken = 0;
	for (int i = 0; i < COUNT(tiles); i++) {
		const size_t used = starpu_memory_get_used(1);
		tiles[i] = smalti_tile_upload(task_group, 1, BYTES, values);
		CHECK(starpu_data_prefetch_on_node(smalti_tile_handle(tiles[i]), 1, 0) == 0 &&
			  is_at(tiles[i], 1),
		      "on the device");
		taken += starpu_memory_get_used(1) > used;
	}
	CHECK(taken <= 1, "memory is taken once, or was there");
	for (int i = 0; i < COUNT(tiles); i++)
		smalti_tile_release(tiles[i]);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "tiles");
	smalti_task_group_free(task_group);
	test_close_devices(session);
}

/* Has references on all memories when the devices end. */
static void hold_everywhere(void *handle)
{
	usleep(3000);
	starpu_data_release_on_node(handle, STARPU_ACQUIRE_NO_NODE_LOCK_ALL);
}

/* A session ends while prefetches are under way. */
static void late_prefetches(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = test_open_devices("late prefetches", "1", 2, NULL, NULL);
	if (!session)
		return;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "prefetches", 0, &error);
	static float values[FLOATS];
	fill(values, 0);
	for (int i = 0; i < 4 * TILES; i++) {
		struct smalti_tile *x = smalti_tile_upload(task_group, 1, (int64_t)sizeof(values), values);
		for (unsigned node = 1; node <= 2; node++)
			starpu_data_prefetch_on_node_prio(smalti_tile_handle(x), node, 1, 1 + i % 7);
		if (i % TILES == 0)
			starpu_data_acquire_on_node_cb(smalti_tile_handle(x), STARPU_ACQUIRE_NO_NODE_LOCK_ALL,
						       STARPU_R, hold_everywhere, smalti_tile_handle(x));
		smalti_tile_release(x);
	}
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "prefetches");
	smalti_task_group_free(task_group);
	test_close_devices(session);
}
#endif

static const struct test tests[] = {
    {"little memory", little_memory},     {"too large", too_large},
    {"early inputs", early_inputs},       {"waited for", waited_for},
#ifdef STARPU_TRANSFER_CALLBACKS
    {"late prefetches", late_prefetches}, {"pieces", pieces},
#endif
};

TEST_PROGRAM()
{
	return test_main("tiles on devices", tests, COUNT(tests));
}
