/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated machine as the one that the process runs on. */
#include "host/machine.h"
#include "simulation/chosen.h"

struct smalti_machine_cpus smalti_machine_cpus(void)
{
	const int cpus = (int)smalti_chosen.machine.cpu.count;
	return (struct smalti_machine_cpus){cpus, cpus, cpus};
}

int smalti_machine_quota(const struct smalti_machine_cpus *cpus)
{
	return cpus->cores;
}

int64_t smalti_machine_memory(void)
{
	return (int64_t)smalti_chosen.machine.cpu.memory;
}
