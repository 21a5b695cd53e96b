/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct hwloc_topology;

/* Processors, and those of them that the process may run on (taskset, a control group). */
struct smalti_machine_cpus {
	int threads, cores, allowed_cores;
};

/* Of a topology that is loaded. */
/* Reads this machine's topology, for hwloc_topology_destroy(); -1 if it cannot. */
int smalti_machine_open(struct hwloc_topology **machine);
struct smalti_machine_cpus smalti_machine_cpus_of(struct hwloc_topology *machine);
/* Of this machine; takes some milliseconds, so it is asked once. */
struct smalti_machine_cpus smalti_machine_cpus(void);

/* The workers that a control group gives time for; 0: as many as there are cores. */
int smalti_machine_quota(const struct smalti_machine_cpus *cpus);

/* Bytes that the process may hold: the machine's memory, or less where a control group or ulimit says so. */
int64_t smalti_machine_memory(void);
