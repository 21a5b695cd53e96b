/* SPDX-License-Identifier: Apache-2.0
 *
 * The session and its task groups: what they refuse, what they wait for, what they leave behind. */
#include "base/json.h"
#include "codelets/codelets.h"
#include "harness.h"
#include "host/pool.h"
#include "rt/session.h"
#include "rt/throttle.h"
#include "stage.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <starpu.h>

static void close_session(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void options(void)
{
	static const struct {
		const char *what;
		struct smalti_session_options options;
		enum smalti_code code;
		const char *words[2];
	} cases[] = {
	    {"policy", {.policy = "none such"}, SMALTI_EINVAL, {"none such", "lws"}},
	    {"cpus", {.cpus = -1}, SMALTI_EINVAL, {"-1", "CPU workers"}},
	    {"too many cpus", {.cpus = INT64_MAX}, SMALTI_EINVAL, {"9223372036854775807", "CPU workers"}},
	    {"CUDA devices", {.cuda = -2}, SMALTI_EINVAL, {"-2", "CUDA devices"}},
	    {"no scratch", {.scratch = "/none/such"}, SMALTI_EIO, {"/none/such", "exist"}},
	    {"scratch", {.scratch = "/dev/null"}, SMALTI_EIO, {"/dev/null", "writable"}},
	    {"trace", {.trace = "/none/such"}, SMALTI_ENOENT, {"/none/such", "trace"}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_session *session = smalti_session_open(&cases[i].options, &error);
		FAILS(session ? 0 : -1, &error, cases[i].code, cases[i].what, cases[i].words[0],
		      cases[i].words[1]);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options defaults;
	smalti_session_defaults(&defaults);
	struct smalti_session *first = smalti_session_open(&defaults, &error);
	SUCCEEDS(first ? 0 : -1, &error, "after sessions that did not open");
	FAILS(smalti_session_open(&defaults, &error) ? 0 : -1, &error, SMALTI_EINVAL, "second",
	      "one per process");
	close_session(first);
}

/* Without StarPU a task has run when it was inserted, and its failure is its task group's. */
static void sequential(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options defaults;
	smalti_session_defaults(&defaults);
	struct smalti_session *session = smalti_session_open_sequential(&error);
	SUCCEEDS(session ? 0 : -1, &error, "sequential");
	CHECK(session->sequential && session->workers == 1, "one that works");
	FAILS(smalti_session_open(&defaults, &error) ? 0 : -1, &error, SMALTI_EINVAL, "second",
	      "one per process");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "sequential", 0, &error);
	const float x[] = {1, 2, 3};
	float y[3] = {0};
	struct smalti_tile *from = smalti_tile_upload(task_group, 1, sizeof(x), x);
	struct smalti_tile *to = smalti_tile_over(task_group, 1, sizeof(y), y);
	smalti_insert(copy, task_group, (.x = from, .y = to), .bytes = sizeof(x));
	CHECK(memcmp(x, y, sizeof(x)) == 0, "done at once");
	smalti_insert(copy, task_group, (.x = from), .bytes = sizeof(x));
	FAILS(smalti_task_group_status(task_group, &error), &error, SMALTI_EINVAL, "missing", "copy", "'y'");
	smalti_tile_release(from);
	smalti_tile_release(to);
	smalti_task_group_free(task_group);
	close_session(session);
}

/* StarPU takes its memory limit from the environment: a session's must not stay for the next one. */
static void environment(void)
{
	static const char variable[] = "STARPU_LIMIT_CPU_MEM";
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options limited = {.memory_limit = (int64_t)512 << 20,
						       .scratch = test_scratch()};
	unsetenv(variable);
	struct smalti_session *session = smalti_session_open(&limited, &error);
	SUCCEEDS(session ? 0 : -1, &error, "limited");
	CHECK(session->memory_limit == limited.memory_limit, "limit");
	close_session(session);
	CHECK(!getenv(variable), "the limit is gone with its session");
	setenv(variable, "1000", 1);
	session = smalti_session_open(&limited, &error);
	SUCCEEDS(session ? 0 : -1, &error, "limited by the user");
	close_session(session);
	CHECK(getenv(variable) && strcmp(getenv(variable), "1000") == 0, "the user's own limit stays");
	unsetenv(variable);
}

/* A task that runs until it is let go. */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool open;
	atomic_int entered, passed;
};

static int pass(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)count, (void)values, (void)error;
	struct gate *gate = user;
	atomic_fetch_add(&gate->entered, 1);
	pthread_mutex_lock(&gate->mutex);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->mutex);
	pthread_mutex_unlock(&gate->mutex);
	usleep(20000); /* time for a waiter that does not wait */
	atomic_fetch_add(&gate->passed, 1);
	return 0;
}

static void *open_gate(void *user)
{
	struct gate *gate = user;
	usleep(20000);
	pthread_mutex_lock(&gate->mutex);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->mutex);
	return NULL;
}

static void insert_pass(struct smalti_task_group *task_group, struct gate *gate)
{
	static const float value = 1;
	struct smalti_tile *tile = smalti_tile_upload(task_group, 1, sizeof(value), &value);
	smalti_insert(deliver, task_group, (.x = tile), .count = 1, .sink = pass, .user = gate);
	smalti_tile_release(tile);
}

/* What had passed the gate when a task behind it ran. */
struct witness {
	struct gate *gate;
	int seen;
};

static int look(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)count, (void)values, (void)error;
	struct witness *witness = user;
	witness->seen = atomic_load(&witness->gate->passed);
	return 0;
}

/* A task of its own tiles waits for those that were inserted before the barrier was written. */
static void barriers(void)
{
	static const char *const policies[] = {"lws", "eager"};
	static const float value = 1;
	for (int i = 0; i < COUNT(policies); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_session *session = stage_session(policies[i], 2);
		struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
		struct witness witness = {&gate, -1};
		struct smalti_task_group *task_group = smalti_task_group_new(session, "barriers", 0, &error);
		struct smalti_tile *barrier = smalti_tile_new(task_group, 1, sizeof(value));
		struct smalti_tile *own = smalti_tile_upload(task_group, 1, sizeof(value), &value);
		for (int k = 0; k < 2; k++) {
			smalti_task_group_behind(task_group, NULL);
			smalti_insert(clear, task_group, (.y = barrier), .bytes = sizeof(value));
			smalti_task_group_behind(task_group, barrier);
			if (k == 0)
				insert_pass(task_group, &gate);
		}
		smalti_insert(deliver, task_group, (.x = own), .count = 1, .sink = look, .user = &witness);
		smalti_tile_release(own);
		smalti_tile_release(barrier);
		open_gate(&gate);
		smalti_task_group_wait(task_group);
		CHECK(witness.seen == 1, policies[i]);
		smalti_task_group_free(task_group);
		close_session(session);
	}
}

static void count_done(void *user)
{
	atomic_fetch_add((atomic_int *)user, 1);
}

/* Waiting means for the last task, whether the task group was closed or not. */
static void waiting(void)
{
	struct smalti_session *session = stage_session(NULL, 2);
	for (int tasks = 1; tasks <= 3; tasks++)
		for (int closed = 0; closed < 2; closed++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER,
					    .changed = PTHREAD_COND_INITIALIZER};
			atomic_int done = 0;
			pthread_t opener;
			struct smalti_task_group *task_group =
			    smalti_task_group_new(session, "waiting", 0, &error);
			for (int i = 0; i < tasks; i++)
				insert_pass(task_group, &gate);
			if (closed)
				smalti_task_group_close(task_group, count_done, &done);
			pthread_create(&opener, NULL, open_gate, &gate);
			smalti_task_group_wait(task_group);
			CHECK(atomic_load(&gate.passed) == tasks, closed ? "closed" : "not closed");
			while (atomic_load(&done) < closed)
				usleep(100);
			pthread_join(opener, NULL);
			smalti_task_group_free(task_group);
			SUCCEEDS(smalti_session_close(NULL, &error), &error, "nothing to close");
		}
	close_session(session);
}

/* The numbers of tasks in the order in which they ran. */
struct order {
	int count;
	float number[6];
};

static int note(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)count, (void)error;
	struct order *order = user;
	order->number[order->count++] = values[0];
	return 0;
}

/* Of tasks that are ready, an earlier request's run first, and of one request's those with a longer path. */
static void ordered_by(const char *policy)
{
	static const float expected[] = {2, 0, 1, 5, 3, 4}; /* numbers as they are inserted */
	static const int64_t bottom_levels[] = {2, 1, INT64_MAX};
	struct smalti_session *session = stage_session(policy, 1);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct order order = {.count = 0};
	struct smalti_task_group *group[] = {smalti_task_group_new(session, "first", 0, &error),
					     smalti_task_group_new(session, "second", -1, &error)};
	insert_pass(group[0], &gate);
	while (atomic_load(&gate.entered) == 0) /* the worker takes nothing else before all are there */
		usleep(100);
	for (int i = 0; i < 6; i++) {
		const float number = (float)i;
		smalti_task_group_bottom_level(group[i / 3], bottom_levels[i % 3]);
		struct smalti_tile *tile = smalti_tile_upload(group[i / 3], 1, sizeof(number), &number);
		smalti_insert(deliver, group[i / 3], (.x = tile), .count = 1, .sink = note, .user = &order);
		smalti_tile_release(tile);
	}
	open_gate(&gate);
	smalti_task_group_wait(group[0]);
	smalti_task_group_wait(group[1]);
	CHECK(memcmp(order.number, expected, sizeof(expected)) == 0, policy);
	smalti_task_group_free(group[0]);
	smalti_task_group_free(group[1]);
	close_session(session);
}

static void priorities(void)
{
	ordered_by("prio");
	ordered_by("dmdas");
}

struct window {
	struct gate gate;
	atomic_int inserted, inserted_at_opening;
};

static void *open_window(void *user)
{
	struct window *window = user;
	usleep(200000);
	window->inserted_at_opening = window->inserted;
	return open_gate(&window->gate);
}

/* Inserting waits for workers when they are far behind. */
static void bounded(void)
{
	enum { TASKS = 2 * SMALTI_MAX_TASKS };
	const struct smalti_session_options small = {.cpus = 1};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct window window = {
	    .gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
	struct smalti_session *session = smalti_session_open(&small, &error);
	SUCCEEDS(session ? 0 : -1, &error, "small");
	struct smalti_task_group *task_group = smalti_task_group_new(session, "window", 0, &error);
	pthread_t opener;
	insert_pass(task_group, &window.gate);
	pthread_create(&opener, NULL, open_window, &window);
	struct smalti_tile *tile = smalti_tile_upload(task_group, 1, 4, "abc");
	for (int i = 0; i < TASKS; i++, window.inserted++)
		smalti_insert(clear, task_group, (.y = tile), .bytes = 4);
	smalti_tile_release(tile);
	pthread_join(opener, NULL);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "bounded");
	CHECK(window.inserted_at_opening <= SMALTI_MAX_TASKS, "no more wait than the window holds");
	smalti_task_group_free(task_group);
	close_session(session);
}

/* Each place has tasks of its own to wait. */
static void bounded_by_place(void)
{
	struct smalti_throttle throttle = {.serve = NULL};
	smalti_throttle_open(&throttle);
	smalti_throttle_places(&throttle, 3);
	for (int i = 0; i < 3 * SMALTI_MAX_TASKS; i++)
		smalti_throttle_enter(&throttle);
	CHECK(smalti_throttle_tasks(&throttle) == 3 * SMALTI_MAX_TASKS, "none had to wait");
	smalti_throttle_close(&throttle);
}

/* A task group tells what has ended of it: here the first task holds up all but one, which runs ahead. */
static void progress(void)
{
	static const float values[8] = {0};
	struct smalti_session *session = stage_session(NULL, 2);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct smalti_task_group_progress ahead, after;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "progress", 0, &error);
	struct smalti_tile *x = smalti_tile_upload(task_group, 8, sizeof(float), values);
	struct smalti_tile *y = smalti_tile_upload(task_group, 8, sizeof(float), values);
	struct smalti_tile *row = smalti_tile_upload(task_group, 8, sizeof(float), values);
	smalti_insert(deliver, task_group, (.x = x), .count = 8, .sink = pass, .user = &gate);
	smalti_task_group_stage(task_group, 2);
	smalti_insert(add_row, task_group, (.row = row, .y = x), .rows = 1, .dim = 8);
	smalti_task_group_stage(task_group, 5);
	smalti_insert(add_row, task_group, (.row = row, .y = y), .rows = 1, .dim = 3);
	smalti_task_group_stage(task_group, 6);
	smalti_insert(add_row, task_group, (.row = row, .y = x), .rows = 1, .dim = 1);
	do
		smalti_task_group_progress(task_group, &ahead);
	while (ahead.left > 3);
	CHECK(ahead.inserted == 12 && ahead.done == 3 && ahead.left == 3 && ahead.stage == 2, "held up");
	open_gate(&gate);
	smalti_task_group_wait(task_group);
	smalti_task_group_progress(task_group, &after);
	CHECK(after.inserted == 12 && after.done == 12 && after.left == 0 && after.stage == 6, "ended");
	smalti_tile_release(x);
	smalti_tile_release(y);
	smalti_tile_release(row);
	smalti_task_group_free(task_group);
	close_session(session);
}

static void closed_when_idle(void)
{
	struct smalti_session *session = stage_session(NULL, 1);
	struct smalti_error error = SMALTI_NO_ERROR;
	atomic_int done = 0;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "idle", 0, &error);
	CHECK(atomic_load(&done) == 0, "not yet");
	smalti_task_group_close(task_group, count_done, &done);
	CHECK(atomic_load(&done) == 1, "at once, there being no task");
	smalti_task_group_free(task_group);
	close_session(session);
}

static int must_not_run(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)user, (void)count, (void)values, (void)error;
	CHECK(false, "a task of a failed task group");
	return 0;
}

/* Failure is sticky, keeps its first cause, and reaches whoever needs the task group. */
static void failing(void)
{
	struct smalti_session *session = stage_session(NULL, 1);
	struct smalti_error error = SMALTI_NO_ERROR, first = SMALTI_NO_ERROR, second = SMALTI_NO_ERROR;
	struct smalti_task_group *needed = smalti_task_group_new(session, "needed", 0, &error);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "needs", 0, &error);
	struct smalti_task_group *other = smalti_task_group_new(session, "other", 0, &error);
	smalti_task_group_depends_on(task_group, needed);
	smalti_fail(&first, SMALTI_EIO, "the first cause");
	smalti_fail(&second, SMALTI_ENOMEM, "the second");
	smalti_task_group_fail(needed, &first);
	smalti_task_group_fail(needed, &second);
	CHECK(smalti_task_group_failed(task_group) && !smalti_task_group_failed(other), "failed");
	struct smalti_tile *after = smalti_tile_new(task_group, 1, 4);
	smalti_insert(clear, task_group, (.y = after), .bytes = 4);
	smalti_insert(deliver, task_group, (.x = after), .count = 1, .sink = must_not_run);
	smalti_tile_release(after);
	CHECK(!smalti_task_group_broken(task_group), "goes on without doing anything");
	smalti_task_group_stage(task_group, 1);
	CHECK(smalti_task_group_broken(task_group) && !smalti_task_group_broken(needed),
	      "until the next stage");
	smalti_task_group_break(needed, &first);
	CHECK(!smalti_tile_new(task_group, 1, 1) && !smalti_tile_upload(task_group, 1, 1, "x"),
	      "no tiles any more");
	FAILS(smalti_task_group_status(task_group, &error), &error, SMALTI_EIO, "needs", "the first cause");

	struct smalti_error none = SMALTI_NO_ERROR;
	struct smalti_tile *tile = smalti_tile_new(other, 1, 4);
	smalti_insert(copy, other, (.y = tile), .bytes = 4);
	FAILS(smalti_task_group_status(other, &none), &none, SMALTI_EINVAL, "missing buffer", "copy", "'x'");
	smalti_tile_release(tile);

	struct smalti_task_group *greedy = smalti_task_group_new(session, "greedy", 0, &error);
	for (int i = 0; i <= SMALTI_MAX_DEPENDENCIES; i++)
		smalti_task_group_depends_on(greedy, other);
	CHECK(smalti_task_group_failed(greedy), "too many needs");
	smalti_task_group_free(greedy);
	smalti_task_group_free(other);
	smalti_task_group_free(task_group);
	smalti_task_group_free(needed);
	close_session(session);
}

static void tiles(void)
{
	static const struct {
		int64_t rows, row_bytes;
	} refused[] = {
	    {0, 4}, {4, 0}, {-1, 4}, {4, -1}, {INT64_MAX, 4}, {4, INT64_MAX}, {(int64_t)1 << 32, 1}};
	struct smalti_session *session = stage_session(NULL, 1);
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_task_group *task_group = smalti_task_group_new(session, "tiles", 0, &error);
		CHECK(!smalti_tile_new(task_group, refused[i].rows, refused[i].row_bytes), "no such tile");
		FAILS(smalti_task_group_status(task_group, &error), &error, SMALTI_EINVAL, "tile", "rows");
		smalti_task_group_free(task_group);
	}
	close_session(session);
}

static int64_t address_space(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	CHECK(file && fscanf(file, "%ld", &pages) == 1, "size of the process");
	if (file)
		fclose(file);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void end_task_group(struct smalti_task_group *task_group, struct smalti_tile *tile, bool refused,
			   const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_tile_release(tile);
	smalti_task_group_wait(task_group);
	if (refused)
		FAILS(smalti_task_group_status(task_group, &error), &error, SMALTI_ENOMEM, what, "refused",
		      "ulimit");
	else
		SUCCEEDS(smalti_task_group_status(task_group, &error), &error, what);
	smalti_task_group_free(task_group);
}

/* Memory that the system refuses is the end of who asked for it, in a task or outside, and of nobody else. */
static void refused_memory(void)
{
	enum { SMALL = 4, LARGE = 512 << 20, LEFT = 256 << 20 };
	static char values[LARGE];
	struct rlimit before;
	struct smalti_session *session = stage_session(NULL, 2);
	if (SMALTI_POOLED) { /* a sanitizer maps more than any limit */
		CHECK(getrlimit(RLIMIT_AS, &before) == 0, "limit");
		const struct rlimit small = {(rlim_t)(address_space() + LEFT), before.rlim_max};
		CHECK(setrlimit(RLIMIT_AS, &small) == 0, "limit");
		for (int round = 0; round < 3; round++)
			for (int large = 1; large >= 0; large--) {
				struct smalti_error error = SMALTI_NO_ERROR;
				const int bytes = large ? LARGE : SMALL;
				struct smalti_task_group *task_group =
				    smalti_task_group_new(session, "task", 0, &error);
				struct smalti_tile *tile = smalti_tile_new(task_group, 1, bytes);
				for (int i = 0; i < 3; i++)
					smalti_insert(clear, task_group, (.y = tile), .bytes = bytes);
				end_task_group(task_group, tile, large, "task");
				task_group = smalti_task_group_new(session, "upload", 0, &error);
				tile = smalti_tile_upload(task_group, 1, bytes, values);
				CHECK(tile && smalti_task_group_failed(task_group) == large, "uploaded");
				end_task_group(task_group, tile, large, "upload");
			}
		CHECK(setrlimit(RLIMIT_AS, &before) == 0, "limit");
	}
	close_session(session);
}

/* The trace is JSON that names every task, its request and the session's workers. */
static void trace(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("trace.json");
	const struct smalti_session_options traced = {.cpus = 1, .trace = path};
	struct smalti_session *session = smalti_session_open(&traced, &error);
	SUCCEEDS(session ? 0 : -1, &error, "traced");
	struct smalti_task_group *task_group =
	    smalti_task_group_new(session, "a \"quoted\\\" name", 0, &error);
	struct smalti_tile *tile = smalti_tile_upload(task_group, 1, 4, "abc");
	for (int i = 0; i < 3; i++)
		smalti_insert(clear, task_group, (.y = tile), .bytes = 4);
	smalti_tile_release(tile);
	smalti_task_group_free(task_group);
	close_session(session);

	cJSON *file = smalti_json_read(path, 1 << 20, &error);
	SUCCEEDS(file ? 0 : -1, &error, "trace");
	int tasks = 0, workers = 0;
	const cJSON *event;
	cJSON_ArrayForEach (event, cJSON_GetObjectItem(file, "traceEvents")) {
		const char *name = cJSON_GetObjectItem(event, "name")->valuestring;
		const cJSON *arguments = cJSON_GetObjectItem(event, "args");
		workers += strcmp(name, "thread_name") == 0;
		if (strcmp(name, "clear") != 0)
			continue;
		tasks++;
		CHECK(strcmp(cJSON_GetObjectItem(arguments, "request")->valuestring, "a \"quoted\\\" name") ==
			  0,
		      "request");
		CHECK(cJSON_GetObjectItem(event, "dur")->valuedouble >= 0, "duration");
	}
	CHECK(tasks == 3 && workers == 1, "every task and worker");
	cJSON_Delete(file);
}

#ifdef STARPU_TRANSFER_CALLBACKS /* a StarPU of scripts/starpu: with others they only poll */
/* How often the workers gave up their cores to wait for something. */
static long sleeps(void)
{
	long sum = 0, count;
	char line[256], path[300];
	DIR *threads = opendir("/proc/self/task");
	for (const struct dirent *thread; threads && (thread = readdir(threads));) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread->d_name);
		FILE *file = fopen(path, "r");
		bool works = false;
		while (file && fgets(line, sizeof(line), file)) {
			works |= strncmp(line, "Name:\tCPU ", 10) == 0;
			if (works && sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
				sum += count;
		}
		if (file)
			fclose(file);
	}
	if (threads)
		closedir(threads);
	return sum;
}

/* A worker that waits for another's task leaves its core to others. If it only polled it would never sleep:
 * minutes end that. */
static void idle_workers_sleep(void)
{
	enum { SLEEPS = 1000, MOST_TRIES = 120 * 100 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct smalti_session *session = stage_session(NULL, 2);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "idle", 0, &error);
	insert_pass(task_group, &gate);
	while (!atomic_load(&gate.entered))
		usleep(1000);
	const long before = sleeps();
	int tries = 0;
	while (sleeps() < before + SLEEPS && tries < MOST_TRIES) {
		usleep(10000);
		tries++;
	}
	CHECK(tries < MOST_TRIES, "it sleeps");
	open_gate(&gate);
	smalti_task_group_free(task_group);
	close_session(session);
}
#endif

static const struct test tests[] = {
    {"options", options},
    {"sequential", sequential},
    {"environment", environment},
    {"waiting", waiting},
    {"barriers", barriers},
    {"priorities", priorities},
    {"bounded", bounded},
    {"bounded by place", bounded_by_place},
    {"progress", progress},
    {"closed when idle", closed_when_idle},
    {"failing", failing},
    {"tiles", tiles},
    {"refused memory", refused_memory},
    {"trace", trace},
#ifdef STARPU_TRANSFER_CALLBACKS
    {"idle workers sleep", idle_workers_sleep},
#endif
};

TEST_MAIN("session", tests)
