/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that are shipped, loaded by a program that uses StarPU alone: every task runs once, after all
 * that it waits for; the highest priority first. */
#include "tests/harness.h"

#include <starpu.h>

enum { CELLS = 7, TASKS = 400, WAITING = 12 };

static const char *const policies[] = {"locality", "nearest"};

/* A cell becomes what a serial program makes of it. */
static int64_t step(int64_t to, int64_t from, int64_t number)
{
	return (to * 31 + from * 7 + number) % 1000003;
}

static void run_step(void *buffers[], void *argument)
{
	int64_t *to = (int64_t *)STARPU_VARIABLE_GET_PTR(buffers[0]);
	const int64_t *from = (const int64_t *)STARPU_VARIABLE_GET_PTR(buffers[1]);
	*to = step(*to, *from, *(const int64_t *)argument);
}

static struct starpu_codelet step_codelet = {
    .cpu_funcs = {run_step}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_R}};

static int order[WAITING], ran;

static void run_note(void *buffers[], void *argument)
{
	(void)buffers;
	order[ran++] = (int)*(const int64_t *)argument;
}

static struct starpu_codelet note_codelet = {.cpu_funcs = {run_note}, .nbuffers = 0};

static bool open_with(const char *policy, int workers)
{
	struct starpu_conf conf;
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s.so", getenv("SMALTI_POLICIES"), policy);
	setenv("STARPU_SCHED_LIB", path, 1);
	starpu_conf_init(&conf);
	conf.sched_policy_name = policy;
	conf.ncpus = workers;
	conf.nopencl = conf.ncuda = 0;
	const int status = starpu_init(&conf);
	CHECK(status == 0, policy);
	if (status == 0)
		CHECK(strcmp(starpu_sched_get_sched_policy()->policy_name, policy) == 0, policy);
	return status == 0;
}

static void insert(struct starpu_codelet *codelet, int priority, int64_t *argument, starpu_data_handle_t to,
		   starpu_data_handle_t from)
{
	struct starpu_task *task = starpu_task_create();
	task->cl = codelet;
	task->cl_arg = argument;
	task->cl_arg_size = sizeof(*argument);
	task->priority = priority;
	if (to) {
		task->handles[0] = to;
		task->handles[1] = from;
	}
	CHECK(starpu_task_submit(task) == 0, "submitted");
}

static void like_a_serial_program(const char *policy, int workers)
{
	static int64_t numbers[TASKS];
	int64_t cells[CELLS] = {0}, serial[CELLS] = {0};
	starpu_data_handle_t handles[CELLS];
	uint64_t state = 5;
	if (!open_with(policy, workers))
		return;
	for (int i = 0; i < CELLS; i++)
		starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&cells[i],
					      sizeof(cells[i]));
	for (int i = 0; i < TASKS; i++) {
		const int to = (int)((1 + test_random(&state)) * CELLS / 2),
			  from = (to + 1 + i % (CELLS - 1)) % CELLS;
		numbers[i] = i;
		serial[to] = step(serial[to], serial[from], i);
		insert(&step_codelet, (int)(100 * test_random(&state)), &numbers[i], handles[to],
		       handles[from]);
	}
	starpu_task_wait_for_all();
	for (int i = 0; i < CELLS; i++) {
		starpu_data_unregister(handles[i]);
		CHECK(cells[i] == serial[i], policy);
	}
	starpu_shutdown();
}

static void serial(void)
{
	for (size_t i = 0; i < COUNT_OF(policies); i++)
		for (int workers = 1; workers <= 3; workers++)
			like_a_serial_program(policies[i], workers);
}

static void by_priority(void)
{
	static int64_t numbers[WAITING];
	for (size_t i = 0; i < COUNT_OF(policies); i++) {
		if (!open_with(policies[i], 1))
			return;
		ran = 0;
		starpu_pause();
		for (int task = 0; task < WAITING; task++) {
			numbers[task] = task;
			insert(&note_codelet, task * 5 % WAITING / 2, &numbers[task], NULL, NULL);
		}
		starpu_resume();
		starpu_task_wait_for_all();
		CHECK(ran == WAITING, policies[i]);
		for (int task = 1; task < ran; task++) {
			const int before = order[task - 1] * 5 % WAITING / 2,
				  now = order[task] * 5 % WAITING / 2;
			CHECK(before > now || (before == now && order[task - 1] < order[task]), policies[i]);
		}
		starpu_shutdown();
	}
}

static const struct test tests[] = {
    {"what a serial program makes", serial},
    {"the highest priority first, then the order of insertion", by_priority},
};

TEST_MAIN("policies", tests)
