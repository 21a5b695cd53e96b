/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "simulation/machine.h"

/* The bytes that cross the links of a machine in any schedule, and the least time for that. Memory 0 is main
 * memory, g + 1 that of GPU g.
 *
 * A tile's value enters each memory where it is read, and leaves the one where it was made, at least once.
 * These memories are known if its tasks may run in one memory only. Values of main memory with readers that
 * may run anywhere cross unless CPUs run all of these readers. */
struct smalti_crossings;

enum { SMALTI_CROSSES_ANYWHERE = -1 };

/* How a task uses a tile; `at_home`: it is in main memory when it is used for the first time. */
struct smalti_crossing {
	int64_t tile;
	double bytes;
	bool reads, writes, at_home;
};

/* The machine must outlive it. */
struct smalti_crossings *smalti_crossings_new(const struct smalti_simulated_machine *machine,
					      struct smalti_error *error);
void smalti_crossings_free(struct smalti_crossings *crossings);

/* Adds a task, in the order of insertion: it runs in one memory, or anywhere, for `seconds` on a CPU. `wait`
 * is how long it keeps a GPU waiting for what it receives (smalti_machine_wait()). -1 without memory. */
int smalti_crossings_add(struct smalti_crossings *crossings, const struct smalti_crossing *uses, int count,
			 int memory, double seconds, double wait);

/* Returns the least seconds from when the tile is written until a task can begin in that memory. */
double smalti_crossings_delay(const struct smalti_crossings *crossings, const struct smalti_crossing *use,
			      int memory);

/* Returns a lower bound on any schedule's time, on so many CPUs and GPUs, after the last task. */
double smalti_crossings_bound(struct smalti_crossings *crossings, int64_t cpus, int64_t gpus);
