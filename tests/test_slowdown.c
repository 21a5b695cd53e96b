/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers that the environment makes slower: their tasks take that many times as long, others' do not.
 */
#include "base/clock.h"
#include "codelets/codelets.h"
#include "driver.h"
#include "harness.h"
#include "rt/session.h"
#include "rt/slowdown.h"

#include <glob.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <starpu.h>

enum { ROWS = 512, DIM = 1152, TASKS = 20, PLACES = 2 };

static bool with_device;

static void refused(void)
{
	static const struct {
		const char *text, *words[2];
	} cases[] = {
	    {"cpu0", {"items like", "'cpu0'"}},
	    {":3", {"a worker of CPU0", "':3'"}},
	    {"cpu:3", {"a worker of CPU0", "'cpu:3'"}},
	    {"cpu7:3", {"a worker of CPU0", "'cpu7:3'"}},
	    {"cpu0:3,fpga0:2", {"a worker of CPU0", "'fpga0:2'"}},
	    {"cpu0:0.99", {"from 1", "'0.99'"}},
	    {"cpu0:nan", {"from 1", "'nan'"}},
	    {"cpu0:2,", {"items like", "''"}},
	    {"cpu0:2 ", {"from 1", "'2 '"}},
	};
	const struct smalti_session_options options = {.cpus = 1};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		setenv(smalti_slowdown_variable, cases[i].text, 1);
		FAILS(smalti_session_open(&options, &error) ? 0 : -1, &error, SMALTI_EINVAL, cases[i].text,
		      smalti_slowdown_variable, cases[i].words[0], cases[i].words[1]);
	}
	unsetenv(smalti_slowdown_variable);
}

static double busy(const struct smalti_session *session)
{
	double sum = 0;
	for (int worker = 0; worker < session->workers; worker++)
		sum += smalti_session_busy(session, worker);
	return sum;
}

/* The seconds of the quickest of some tasks at one place. */
static double task_at(struct smalti_session *session, int place)
{
	static const float values[ROWS * DIM] = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "tasks", 0, &error);
	struct smalti_tile *row = smalti_tile_upload(task_group, 1, DIM * sizeof(float), values);
	struct smalti_tile *y = smalti_tile_upload(task_group, ROWS, DIM * sizeof(float), values);
	y->owner = place;
	double min = (double)INFINITY;
	for (int i = 0; i < TASKS; i++) {
		const double before = busy(session);
		smalti_insert(add_row, task_group, (.row = row, .y = y), .rows = ROWS, .dim = DIM);
		smalti_task_group_wait(task_group);
		min = fmin(min, busy(session) - before);
	}
	smalti_tile_release(row);
	smalti_tile_release(y);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "tasks");
	smalti_task_group_free(task_group);
	return min;
}

/* Keeps the least of the seconds at each place. */
static void measure(const char *slowdown, const char *policy, double seconds[PLACES])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options = {.cpus = 1, .policy = policy};
	test_ask_for(&options, with_device);
	setenv(smalti_slowdown_variable, slowdown, 1);
	struct smalti_session *session = smalti_session_open(&options, &error);
	unsetenv(smalti_slowdown_variable);
	SUCCEEDS(session ? 0 : -1, &error, slowdown);
	for (int place = 0; session && place <= with_device; place++)
		seconds[place] = fmin(seconds[place], task_at(session, place));
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

/* A sleep may end late, and never early. */
static bool is_scaled(double factor, double expected)
{
	return factor > 0.75 * expected && (expected > 1 || factor < 2.5);
}

/* The machine may be busy with other work during one measurement, but hardly during all pairs, of which one
 * or two do where it is not. */
static void check_scaled(const char *text, const char *const names[PLACES], const double expected[PLACES])
{
	enum { PAIRS = 200 };
	double usual[PLACES] = {(double)INFINITY, (double)INFINITY}, factors[PLACES] = {0};
	double slow[PLACES] = {(double)INFINITY, (double)INFINITY};
	bool scaled = false;
	for (int pair = 0; pair < PAIRS && !scaled; pair++) {
		measure("", NULL, usual);
		measure(text, NULL, slow);
		scaled = true;
		for (int place = 0; place <= with_device; place++) {
			factors[place] = slow[place] / usual[place];
			scaled = scaled && is_scaled(factors[place], expected[place]);
		}
	}
	for (int place = 0; place <= with_device; place++) {
		printf("\n    %s: %.2f times as long", names[place], factors[place]);
		CHECK(is_scaled(factors[place], expected[place]), text);
	}
}

static void scaled(void)
{
	static const struct {
		double cpu, device;
	} cases[] = {{6, 1}, {1, 4}, {2.5, 3}};
	const char *kind = test_cuda() ? "cuda" : "opencl";
	for (int i = 0; i < COUNT(cases); i++) {
		char text[64];
		snprintf(text, sizeof(text), with_device ? "CPU0:%g,%s0:%g" : "cpu0:%g", cases[i].cpu, kind,
			 cases[i].device);
		check_scaled(text, (const char *const[PLACES]){"cpu", kind},
			     (double[PLACES]){cases[i].cpu, cases[i].device});
	}
}

/* What slowed workers take has files of its own. */
static void models(void)
{
	double seconds[PLACES] = {(double)INFINITY, (double)INFINITY};
	char pattern[600];
	const char *directory = test_file("models");
	setenv("STARPU_PERF_MODEL_DIR", directory, 1);
	measure("", "dmda", seconds);
	measure("cpu0:2", "dmda", seconds);
	unsetenv("STARPU_PERF_MODEL_DIR");
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/codelets/*/smalti_add_row_*", directory);
	CHECK(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 2, "two models");
	globfree(&found);
}

/* How many tasks each CPU has run. */
static atomic_int counts[2];

static int work(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)user, (void)count, (void)values, (void)error;
	const double began = smalti_thread_clock();
	while (smalti_thread_clock() - began < 3e-4)
		;
	counts[starpu_worker_get_devid(starpu_worker_get_id())]++;
	return 0;
}

/* Independent tasks on two CPUs, nothing being known of them before. */
static void run_on_two(const char *slowdown, int tasks, const char *models)
{
	enum { COUNT_OF_FLOATS = 1 << 14 };
	static const float values[COUNT_OF_FLOATS] = {0};
	const struct smalti_session_options options = {.cpus = 2};
	struct smalti_error error = SMALTI_NO_ERROR;
	setenv(smalti_slowdown_variable, slowdown, 1);
	setenv("STARPU_PERF_MODEL_DIR", test_file(models), 1);
	struct smalti_session *session = smalti_session_open(&options, &error);
	unsetenv(smalti_slowdown_variable);
	unsetenv("STARPU_PERF_MODEL_DIR");
	SUCCEEDS(session ? 0 : -1, &error, slowdown);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "tasks", 0, &error);
	struct smalti_tile *x = smalti_tile_upload(task_group, 1, sizeof(values), values);
	counts[0] = counts[1] = 0;
	for (int i = 0; i < tasks; i++)
		smalti_insert(deliver, task_group, (.x = x), .count = COUNT_OF_FLOATS, .sink = work);
	smalti_tile_release(x);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "tasks");
	smalti_task_group_free(task_group);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	CHECK(counts[0] + counts[1] == tasks, "each task runs once");
	printf("\n    %s: %d and %d tasks", slowdown, counts[0], counts[1]);
}

/* The CPU gets so many of the tasks. Other programs may disturb a run, but hardly all of so many; and a
 * scheduler that takes no notice of speeds does not come to such numbers in any. */
static void check_share(const char *slowdown, int tasks, int cpu, int min, int max, const char *what)
{
	enum { RUNS = 100 };
	char models[64];
	bool is_so = false;
	for (int run = 0; run < RUNS && !is_so; run++) {
		snprintf(models, sizeof(models), "%s-%d-%d", slowdown, tasks, run);
		run_on_two(slowdown, tasks, models);
		is_so = counts[cpu] >= min && counts[cpu] <= max;
	}
	CHECK(is_so, what);
}

/* A slow worker takes what it has done before the others are done with the rest, and no more. */
static void shared(void)
{
	check_share("cpu1:60", 30, 1, 0, 0, "it would have been the last");
	check_share("cpu0:60", 30, 0, 0, 0, "whichever it is");
	check_share("cpu1:10", 200, 1, 1, 40, "it helps");
}

static const struct test tests[] = {
    {"refused", refused},
    {"measured times are scaled", scaled},
    {"performance models of their own", models},
    {"tasks of heterogeneous workers", shared},
};

TEST_PROGRAM()
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options = {.cpus = 1};
	test_ask_for(&options, 1);
	struct smalti_session *session = smalti_session_open(&options, &error);
	with_device = session != NULL;
	if (!with_device)
		printf("on CPUs alone: %s\n", error.message);
	smalti_session_close(session, &error);
	return test_main("slowdown", tests, COUNT(tests));
}
