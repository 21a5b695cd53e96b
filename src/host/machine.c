/* SPDX-License-Identifier: Apache-2.0 */
#include "host/machine.h"
#include "host/cgroup.h"
#include "host/environment.h"

#include <hwloc.h>
#include <sys/resource.h>

static int count(hwloc_topology_t machine, hwloc_const_cpuset_t set, hwloc_obj_type_t type)
{
	int count = 0;
	for (hwloc_obj_t object = NULL; (object = hwloc_get_next_obj_by_type(machine, type, object));)
		count += object->cpuset && hwloc_bitmap_intersects(object->cpuset, set);
	return count;
}

struct smalti_machine_cpus smalti_machine_cpus_of(hwloc_topology_t machine)
{
	const hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(machine);
	struct smalti_machine_cpus cpus = {.threads = count(machine, all, HWLOC_OBJ_PU),
					   .cores = count(machine, all, HWLOC_OBJ_CORE)};
	/* some virtual machines report only threads */
	const hwloc_obj_type_t type = cpus.cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
	cpus.cores = cpus.allowed_cores = count(machine, all, type);
	hwloc_bitmap_t bound = hwloc_bitmap_alloc();
	if (bound && hwloc_get_cpubind(machine, bound, HWLOC_CPUBIND_PROCESS) == 0)
		cpus.allowed_cores = count(machine, bound, type);
	hwloc_bitmap_free(bound);
	return cpus;
}

/* hwloc would print errors on a machine without /sys; a library prints nothing. hwloc reads this variable
 * once. There, its OpenCL plugin would have PoCL end the program. */
int smalti_machine_open(hwloc_topology_t *machine)
{
	struct smalti_environment changes = {.count = 0};
	if (!getenv("HWLOC_HIDE_ERRORS"))
		smalti_environment_set(&changes, "HWLOC_HIDE_ERRORS", "2", NULL);
	smalti_environment_hide_plugin(&changes, NULL);
	int status = hwloc_topology_init(machine);
	if (status == 0 && (status = hwloc_topology_load(*machine)) < 0)
		hwloc_topology_destroy(*machine);
	smalti_environment_restore(&changes);
	return status;
}

struct smalti_machine_cpus smalti_machine_cpus(void)
{
	struct smalti_machine_cpus cpus = {1, 1, 1};
	hwloc_topology_t machine;
	if (smalti_machine_open(&machine) == 0) {
		cpus = smalti_machine_cpus_of(machine);
		hwloc_topology_destroy(machine);
	}
	return cpus;
}

int smalti_machine_quota(const struct smalti_machine_cpus *cpus)
{
	const double quota = smalti_cgroup_read("").cpus;
	if (quota <= 0 || quota >= cpus->allowed_cores)
		return 0;
	return quota < 1 ? 1 : (int)quota;
}

int64_t smalti_machine_memory(void)
{
	static const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
	int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	const int64_t group = smalti_cgroup_read("").memory;
	if (group && group < bytes)
		bytes = group;
	for (size_t i = 0; i < COUNT_OF(resources); i++) {
		struct rlimit limit;
		if (getrlimit((__rlimit_resource_t)resources[i], &limit) == 0 &&
		    limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < (rlim_t)bytes)
			bytes = (int64_t)limit.rlim_cur;
	}
	return bytes;
}
