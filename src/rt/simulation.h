/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <math.h>

/* Opens sessions on a simulated machine, in the program that is built with StarPU's simulation: tasks compute
 * nothing, and take the time that the machine's description gives (simulation/machine.h). */

#ifdef SMALTI_SIMGRID
/* Returns the least time of transfers in seconds, once smalti_simulation_take() was called; NAN: not
 * known. */
double smalti_simulation_transfers(void);
/* Returns the bytes a second that cross main memory in all. */
double smalti_simulation_host(void);
#else
static inline double smalti_simulation_transfers(void)
{
	return (double)NAN;
}
static inline double smalti_simulation_host(void)
{
	return (double)NAN;
}
#endif

/* Only that program uses what follows. */

struct smalti_simulated_machine;
struct smalti_session;
struct smalti_work_precisions;

/* Sets, before the session is opened, the machine (simulation/machine.h) and the precisions
 * (simulation/chosen.h), for which it must have rates. */
int smalti_simulation_open(const struct smalti_simulated_machine *machine,
			   const struct smalti_work_precisions *precisions, struct smalti_error *error);
/* Has tasks take, from here on, the times from these traces' runs (simulation/measured.h). */
int smalti_simulation_measure(const char *files, struct smalti_error *error);

/* Sets the speeds of devices to those at a mix of work: `flops` has the operations of each kind (enum
 * smalti_work). Before, they are those at products. */
void smalti_simulation_expect(struct smalti_session *session, const double *flops);

/* Returns the simulated time in seconds. */
double smalti_simulation_now(void);

enum { SMALTI_SIMULATED_WORKERS = 176, SMALTI_SIMULATED_MEMORIES = 130 };

/* Results in seconds and bytes. */
struct smalti_simulation {
	int64_t tasks;
	double flops;
	double makespan;   /* from the first task's insertion to the last one's end */
	double text;       /* end of the text encoder's tasks */
	double *step_ends; /* end of each stage: denoising steps, then decoding */
	int64_t steps;     /* number of stages */
	/* Lower bounds of schedules: the work shared ideally; the longest chain of tasks, each at its fastest
	 * place, with the data between them; the data that must cross links (simulation/crossings.h). */
	double area, path, transfers;
	int worker_count;
	struct smalti_simulated_worker {
		char name[64];
		double busy;
		int64_t tasks;
	} workers[SMALTI_SIMULATED_WORKERS];
	int memory_count;
	struct smalti_simulated_memory {
		int64_t peak, limit; /* maximum at a task's end; total */
		int64_t to, from;    /* that arrived, and that left */
		int64_t needed;      /* that a GPU needs so that nothing is evicted; others fill it in */
	} memories[SMALTI_SIMULATED_MEMORIES];
};

/* Returns the results when all tasks have ended; free with smalti_simulation_free(). NULL with
 * SMALTI_ENOMEM. */
struct smalti_simulation *smalti_simulation_take(struct smalti_session *session, struct smalti_error *error);
void smalti_simulation_free(struct smalti_simulation *simulation);
