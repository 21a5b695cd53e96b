/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule_linear.h"
#include "bench/linear_program.h"

#include <math.h>

enum { MAX_TASKS = 2500 };

/* Returns a column: of the makespan, each task's begin, each task's share at each place. */
static int begin_of(int64_t task)
{
	return 2 + (int)task;
}

static int share_of(const struct smalti_task_schedule *s, int64_t task, int place)
{
	return 2 + (int)(s->count + task * s->places) + place;
}

/* Adds the task's length, from its shares at the places that can run it. */
static void add_length(const struct smalti_task_schedule *s, struct smalti_linear_program *program,
		       int64_t task, double factor)
{
	for (int place = 0; place < s->places; place++)
		if (!isinf(s->costs[task * s->places + place]))
			smalti_linear_program_add(program, share_of(s, task, place),
						  factor * s->costs[task * s->places + place]);
}

/* Adds a task's constraints: its shares sum to 1; it ends before the makespan; it begins after those before.
 */
static void add_task(const struct smalti_task_schedule *s, struct smalti_linear_program *program,
		     int64_t task)
{
	for (int place = 0; place < s->places; place++)
		if (isinf(s->costs[task * s->places + place]))
			smalti_linear_program_leave_out(program, share_of(s, task, place));
		else
			smalti_linear_program_add(program, share_of(s, task, place), 1);
	smalti_linear_program_equal(program, 1);
	smalti_linear_program_add(program, 1, 1);
	smalti_linear_program_add(program, begin_of(task), -1);
	add_length(s, program, task, -1);
	smalti_linear_program_at_least(program, 0);
	for (int64_t i = 0; i < s->tasks[task].after_count; i++) {
		const int64_t before = s->tasks[task].after[i];
		smalti_linear_program_add(program, begin_of(task), 1);
		smalti_linear_program_add(program, begin_of(before), -1);
		add_length(s, program, before, -1);
		smalti_linear_program_at_least(program, 0);
	}
}

/* Adds a place's constraint: its workers have the makespan's time. */
static void add_place(const struct smalti_task_schedule *s, struct smalti_linear_program *program, int place)
{
	smalti_linear_program_add(program, 1, (double)s->place_workers[place]);
	for (int64_t task = 0; task < s->count; task++)
		if (!isinf(s->costs[task * s->places + place]))
			smalti_linear_program_add(program, share_of(s, task, place),
						  -s->costs[task * s->places + place]);
	smalti_linear_program_at_least(program, 0);
}

/* Adds a constraint of links: the weights of tasks on devices come within the makespan, to one place, or with
 * place 0 out of main memory. */
static void add_link(const struct smalti_task_schedule *s, struct smalti_linear_program *program, int place)
{
	const double rate = smalti_schedule_weights_rate(s, place);
	smalti_linear_program_add(program, 1, 1);
	for (int64_t task = 0; task < s->count; task++)
		for (int device = 1; device < s->places; device++)
			if ((place == 0 || place == device) && s->weights[task] > 0 &&
			    !isinf(s->costs[task * s->places + device]))
				smalti_linear_program_add(program, share_of(s, task, device),
							  -s->weights[task] / rate);
	smalti_linear_program_at_least(program, 0);
}

double smalti_schedule_linear(const struct smalti_task_schedule *s)
{
	struct smalti_linear_program *program =
	    s->count <= MAX_TASKS ? smalti_linear_program_new(1 + s->count * (1 + s->places)) : NULL;
	if (!program)
		return (double)NAN;
	for (int64_t task = 0; task < s->count; task++)
		add_task(s, program, task);
	for (int place = 0; place < s->places; place++)
		add_place(s, program, place);
	for (int place = 0; place < s->places; place++)
		if (smalti_schedule_weights_rate(s, place) > 0)
			add_link(s, program, place);
	const double optimum = smalti_linear_program_solve(program);
	smalti_linear_program_free(program);
	return optimum;
}
