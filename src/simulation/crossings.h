/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "simulation/machine.h"

/* What has to cross the links of a machine whatever the schedule, and how long that takes at least. Memory 0
 * is main memory, g + 1 that of GPU g.
 *
 * Of a tile's value one knows where it was made and where it is read if its tasks may run in one memory only:
 * it comes into each memory where it is read, and leaves the one where it was made, at least once. Values of
 * main memory that are read by tasks that may run anywhere cross unless CPUs run all of these tasks. */
struct smalti_crossings;

enum { SMALTI_CROSSES_ANYWHERE = -1 };

/* How a task uses a tile; `at_home`: it is in main memory when it is used for the first time. */
struct smalti_crossing {
	int64_t tile;
	double bytes;
	bool reads, writes, at_home;
};

/* The machine outlives it. */
struct smalti_crossings *smalti_crossings_new(const struct smalti_simulated_machine *machine,
					      struct smalti_error *error);
void smalti_crossings_free(struct smalti_crossings *crossings);

/* A task, in the order of insertion: it runs in one memory, or anywhere, in so many seconds on a CPU. `wait`
 * is what a GPU is kept by what it receives (smalti_machine_wait()). -1 without memory. */
int smalti_crossings_add(struct smalti_crossings *crossings, const struct smalti_crossing *uses, int count,
			 int memory, double seconds, double wait);

/* What lies at least between the tile's being written and a task's beginning there, in seconds. */
double smalti_crossings_delay(const struct smalti_crossings *crossings, const struct smalti_crossing *use,
			      int memory);

/* No schedule takes less, on so many of the CPUs and the GPUs. Behind the last task. */
double smalti_crossings_bound(struct smalti_crossings *crossings, int64_t cpus, int64_t gpus);
