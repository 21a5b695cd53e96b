/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/schedule.h"

/* Schedules of a recorded run's tasks that are made in advance, and a model of what they take. In the model a
 * task takes what it took, or elsewhere what was expected. It begins when its worker is free, all that it
 * waits for has ended, and its tiles are there. */

/* What the model counts. Moves: a tile takes its bytes over the link's rate, and the link's delay; a place
 * receives and sends one tile at a time, from when it is written, and weights beside what tasks have made.
 * Insertion: a task is inserted as long after the task before it as in the run, and after those that had all
 * ended when it was inserted there. */
struct smalti_timetable_rules {
	bool moves, insertion;
};

/* A schedule: the tasks in the order in which they begin, with workers and times. */
struct smalti_timetable {
	int64_t count;
	int64_t *sequence;
	int *worker; /* of each task, as are the times */
	double *begin, *end;
	double makespan;
};

struct smalti_timetable *smalti_timetable_new(int64_t count, struct smalti_error *error);
void smalti_timetable_copy(struct smalti_timetable *to, const struct smalti_timetable *from);
void smalti_timetable_free(struct smalti_timetable *plan);

/* The schedule of the run itself. */
struct smalti_timetable *smalti_timetable_recorded(const struct smalti_task_schedule *schedule,
						   struct smalti_error *error);

/* What a tile is to its link: weights, which are there from the beginning and come ahead of their tasks, do
 * not delay what tasks have made. */
enum smalti_timetable_lane { SMALTI_TIMETABLE_WEIGHTS, SMALTI_TIMETABLE_MADE, SMALTI_TIMETABLE_LANES };

/* Until when a place receives, or sends, tiles: one at a time, but main memory as many as share the host's
 * rate. */
enum { SMALTI_TIMETABLE_PORTS = 16 };
struct smalti_timetable_ports {
	double free_at[SMALTI_TIMETABLE_LANES][SMALTI_TIMETABLE_PORTS];
};

/* timetable_model.c: the state of a schedule that is being made, task by task. */
struct smalti_timetable_model {
	const struct smalti_task_schedule *schedule;
	struct smalti_timetable_rules rules;
	int64_t *ends;  /* the tasks in the order of their ends in the run */
	int64_t *waits; /* of each task: how many of those had ended when it was inserted */
	double *pause;  /* of each task: seconds from when it could be inserted to when it was */
	/* The schedule so far. */
	double *end;      /* of each task; INFINITY: not added */
	double *free_at;  /* of each worker */
	double *valid_at; /* of each tile at each place; INFINITY: it is not there */
	struct smalti_timetable_ports *receives, *sends; /* of each place */
	int host_ports;                                  /* of main memory */
	double *inserted_at;                             /* of the tasks before `inserted` */
	double *ended_at; /* when the first so many of `ends` have ended; up to `ended` */
	int64_t inserted, ended;
};
struct smalti_timetable_model *smalti_timetable_model_new(const struct smalti_task_schedule *schedule,
							  struct smalti_timetable_rules rules,
							  struct smalti_error *error);
void smalti_timetable_model_free(struct smalti_timetable_model *model);
/* Begins a new schedule, without tasks. */
void smalti_timetable_model_reset(struct smalti_timetable_model *model);
/* Returns when the task could begin at a place, as far as what it waits for decides; all of that has been
 * added. */
double smalti_timetable_model_ready(const struct smalti_timetable_model *model, int64_t task, int place);
/* Adds the task, which is inserted, and whose predecessors were added, to its worker. */
void smalti_timetable_model_add(struct smalti_timetable_model *model, int64_t task, int worker,
				struct smalti_timetable *plan);

/* Times the plan by the model: its tasks keep their workers and their sequence. */
void smalti_timetable_time(struct smalti_timetable_model *model, struct smalti_timetable *plan);

/* timetable_search.c: searches for the shortest schedule, from several that are given on, until one takes no
 * longer than `enough`. The result is the best of those and of what is found, and repeats exactly. With
 * `fixed` every task stays on this worker, else it may run wherever it can. */
struct smalti_timetable *smalti_timetable_search(const struct smalti_task_schedule *schedule,
						 struct smalti_timetable_rules rules, const int *fixed,
						 const struct smalti_timetable *const *from, int count,
						 double enough, struct smalti_error *error);

/* timetable_window.c: returns a lower bound of all schedules. A window has the tasks before which at least
 * some time passes, and behind which at least some time passes, by their chains; their work has to be done
 * between. With insertion no task begins before it can be inserted, as the rules have it. NAN without memory.
 */
double smalti_timetable_window(const struct smalti_task_schedule *schedule, bool insertion);

/* timetable_links.c: returns a lower bound by the weights that links bring to devices: tasks with at least
 * some time behind them, of which `tail` tells the least, share workers and links up to then. 0: there are no
 * links, too many kinds of tasks, or no GLPK. */
double smalti_timetable_links(const struct smalti_task_schedule *schedule, const double *tail);

/* timetable.c: tells whether the plan keeps to its rules: every task once, where it can run, after all that
 * it waits for, one at a time on each worker. -1 with SMALTI_EINVAL, which names the task. */
int smalti_timetable_check(const struct smalti_task_schedule *schedule, const struct smalti_timetable *plan,
			   struct smalti_error *error);
/* Tells whether a run did what was planned: every task on its worker, in its order. */
int smalti_timetable_followed(const struct smalti_timetable *plan, const struct smalti_task_schedule *run,
			      struct smalti_error *error);
/* Writes it as a file for the policy replay:FILE. */
int smalti_timetable_write(const struct smalti_task_schedule *schedule, const struct smalti_timetable *plan,
			   const char *path, struct smalti_error *error);
