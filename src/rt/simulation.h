/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <math.h>

/* A session on a machine that is not there: in the program that is built with StarPU's simulation, tasks
 * compute nothing, and take what the machine's description says (simulation/machine.h). */

#ifdef SMALTI_SIMGRID
/* What transfers take at least, in seconds, once smalti_simulation_take() was called; NAN: not known. */
double smalti_simulation_transfers(void);
#else
static inline double smalti_simulation_transfers(void)
{
	return (double)NAN;
}
#endif

/* For that program alone. */

struct smalti_simulated_machine;
struct smalti_session;

/* Before the session is opened: the machine, and the precision of each kind of work (simulation/machine.h),
 * for which it must have rates. */
int smalti_simulation_open(const struct smalti_simulated_machine *machine, const int *precisions,
			   struct smalti_error *error);
/* From here on tasks take what they took in the runs of these traces (simulation/measured.h). */
int smalti_simulation_measure(const char *files, struct smalti_error *error);

/* Has devices count as fast as they are at work of which so many operations (by enum smalti_work) are of each
 * kind; before, at products. */
void smalti_simulation_expect(struct smalti_session *session, const double *flops);

enum { SMALTI_SIMULATED_WORKERS = 176, SMALTI_SIMULATED_MEMORIES = 130 };

/* Seconds and bytes. */
struct smalti_simulation {
	int64_t tasks;
	double flops;
	double makespan;   /* from the first task's insertion to the last one's end */
	double text;       /* to the end of the text encoder's */
	double *step_ends; /* to the end of each stage: denoising steps, then decoding */
	int64_t steps;     /* stages */
	/* No schedule takes less: the work shared ideally; the longest chain of tasks, each where it is
	 * fastest, with what has to come between; what has to cross links (simulation/crossings.h). */
	double area, path, transfers;
	int worker_count;
	struct smalti_simulated_worker {
		char name[64];
		double busy;
		int64_t tasks;
	} workers[SMALTI_SIMULATED_WORKERS];
	int memory_count;
	struct smalti_simulated_memory {
		int64_t peak, limit; /* in use at a task's end; what there is */
		int64_t to, from;    /* that went there, and away */
		int64_t needed; /* that a GPU must have so that nothing is moved out; filled in by others */
	} memories[SMALTI_SIMULATED_MEMORIES];
};

/* When all tasks have ended; free with smalti_simulation_free(). NULL with SMALTI_ENOMEM. */
struct smalti_simulation *smalti_simulation_take(struct smalti_session *session, struct smalti_error *error);
void smalti_simulation_free(struct smalti_simulation *simulation);
