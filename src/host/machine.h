/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct hwloc_topology;

/* Processors, and the cores that the process may run on (taskset, a control group). */
struct smalti_machine_cpus {
	int threads, cores, allowed_cores;
};

/* Reads this machine's topology, for hwloc_topology_destroy(); -1 if it cannot. */
int smalti_machine_open(struct hwloc_topology **machine);
struct smalti_machine_cpus smalti_machine_cpus_of(struct hwloc_topology *machine);
/* Returns this machine's processors. It takes some milliseconds, so it is called once. */
struct smalti_machine_cpus smalti_machine_cpus(void);

/* Returns the number of workers that a control group gives time for; 0: one for each core. */
int smalti_machine_quota(const struct smalti_machine_cpus *cpus);

/* Returns the bytes that the process may hold: the machine's memory, or less where a control group or ulimit
 * says so. */
int64_t smalti_machine_memory(void);
