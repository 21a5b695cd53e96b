/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule_linear.h"

#include <math.h>

#ifdef HAVE_GLPK
#include <glpk.h>

enum { MAX_TASKS = 2500, MAX_SECONDS = 60 };

/* Returns a column: of the makespan, each task's begin, each task's share at each place. GLPK counts from 1.
 */
static int begin_of(int64_t task)
{
	return 2 + (int)task;
}

static int share_of(const struct smalti_task_schedule *s, int64_t task, int place)
{
	return 2 + (int)(s->count + task * s->places) + place;
}

/* A row of the program, under construction. */
struct row {
	int *index;
	double *value;
	int length;
};

static void add(struct row *row, int column, double value)
{
	row->length++;
	row->index[row->length] = column;
	row->value[row->length] = value;
}

/* Adds the task's length, from its shares at the places that can run it. */
static void add_length(const struct smalti_task_schedule *s, struct row *row, int64_t task, double factor)
{
	for (int place = 0; place < s->places; place++)
		if (!isinf(s->costs[task * s->places + place]))
			add(row, share_of(s, task, place), factor * s->costs[task * s->places + place]);
}

static void end_row(glp_prob *program, struct row *row, int type, double bound)
{
	const int number = glp_add_rows(program, 1);
	glp_set_row_bnds(program, number, type, bound, bound);
	glp_set_mat_row(program, number, row->length, row->index, row->value);
	row->length = 0;
}

static void set_columns(const struct smalti_task_schedule *s, glp_prob *program)
{
	glp_add_cols(program, 1 + (int)(s->count * (1 + s->places)));
	glp_set_obj_dir(program, GLP_MIN);
	glp_set_obj_coef(program, 1, 1);
	for (int column = 1; column < begin_of(s->count); column++)
		glp_set_col_bnds(program, column, GLP_LO, 0, 0);
	for (int64_t task = 0; task < s->count; task++)
		for (int place = 0; place < s->places; place++)
			glp_set_col_bnds(program, share_of(s, task, place),
					 isinf(s->costs[task * s->places + place]) ? GLP_FX : GLP_LO, 0, 0);
}

/* Adds a task's constraints: its shares sum to 1; it ends before the makespan; it begins after those before.
 */
static void add_task(const struct smalti_task_schedule *s, glp_prob *program, struct row *row, int64_t task)
{
	for (int place = 0; place < s->places; place++)
		if (!isinf(s->costs[task * s->places + place]))
			add(row, share_of(s, task, place), 1);
	end_row(program, row, GLP_FX, 1);
	add(row, 1, 1);
	add(row, begin_of(task), -1);
	add_length(s, row, task, -1);
	end_row(program, row, GLP_LO, 0);
	for (int64_t i = 0; i < s->tasks[task].after_count; i++) {
		const int64_t before = s->tasks[task].after[i];
		add(row, begin_of(task), 1);
		add(row, begin_of(before), -1);
		add_length(s, row, before, -1);
		end_row(program, row, GLP_LO, 0);
	}
}

/* Adds a place's constraint: its workers have the makespan's time. */
static void add_place(const struct smalti_task_schedule *s, glp_prob *program, struct row *row, int place)
{
	add(row, 1, (double)s->place_workers[place]);
	for (int64_t task = 0; task < s->count; task++)
		if (!isinf(s->costs[task * s->places + place]))
			add(row, share_of(s, task, place), -s->costs[task * s->places + place]);
	end_row(program, row, GLP_LO, 0);
}

/* Adds a constraint of links: the weights of tasks on devices come within the makespan, to one place, or with
 * place 0 out of main memory. */
static void add_link(const struct smalti_task_schedule *s, glp_prob *program, struct row *row, int place)
{
	const double rate = smalti_schedule_weights_rate(s, place);
	add(row, 1, 1);
	for (int64_t task = 0; task < s->count; task++)
		for (int device = 1; device < s->places; device++)
			if ((place == 0 || place == device) && s->weights[task] > 0 &&
			    !isinf(s->costs[task * s->places + device]))
				add(row, share_of(s, task, device), -s->weights[task] / rate);
	end_row(program, row, GLP_LO, 0);
}

static double solve(glp_prob *program)
{
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.meth = GLP_DUALP;
	options.presolve = GLP_ON;
	options.tm_lim = 1000 * MAX_SECONDS;
	const bool solved = glp_simplex(program, &options) == 0 && glp_get_status(program) == GLP_OPT;
	return solved ? glp_get_obj_val(program) : (double)NAN;
}

double smalti_schedule_linear(const struct smalti_task_schedule *s)
{
	if (s->count > MAX_TASKS)
		return (double)NAN;
	const int64_t columns = 3 + s->count * (1 + s->places);
	SCOPED(free) int *index = smalti_calloc(columns, sizeof(*index), NULL);
	SCOPED(free) double *value = smalti_calloc(columns, sizeof(*value), NULL);
	if (!index || !value)
		return (double)NAN;
	struct row row = {index, value, 0};
	glp_term_out(GLP_OFF);
	glp_prob *program = glp_create_prob();
	set_columns(s, program);
	for (int64_t task = 0; task < s->count; task++)
		add_task(s, program, &row, task);
	for (int place = 0; place < s->places; place++)
		add_place(s, program, &row, place);
	for (int place = 0; place < s->places; place++)
		if (smalti_schedule_weights_rate(s, place) > 0)
			add_link(s, program, &row, place);
	const double optimum = solve(program);
	glp_delete_prob(program);
	return optimum;
}
#else
double smalti_schedule_linear(const struct smalti_task_schedule *schedule)
{
	(void)schedule;
	return (double)NAN;
}
#endif
