/* SPDX-License-Identifier: Apache-2.0 */
#include "topology/topology.h"
#include "host/machine.h"
#include "kernels/isa.h"
#include "rt/session.h"

#include <hwloc.h>
#include <starpu.h>

static void read_isa(struct smalti_topology *topology)
{
	snprintf(topology->features, sizeof(topology->features), "%s", smalti_isa_features());
	snprintf(topology->isa, sizeof(topology->isa), "%s", smalti_isa_name(smalti_isa()));
	const char *limit = getenv("SMALTI_MAX_ISA");
	snprintf(topology->max_isa, sizeof(topology->max_isa), "%s", limit ? limit : "");
}

static int fill(struct smalti_topology *topology, struct smalti_error *error)
{
	read_isa(topology);
	if (smalti_topology_hardware(topology, starpu_get_hwloc_topology(), error) < 0 ||
	    smalti_topology_runtime(topology, error) < 0 || smalti_topology_libraries(topology, error) < 0)
		return -1;
	return smalti_topology_rates(topology, error);
}

static int fill_alone(struct smalti_topology *topology, struct smalti_error *error)
{
	hwloc_topology_t machine;
	if (smalti_machine_open(&machine) < 0)
		return smalti_fail(error, SMALTI_ENODEV, "hwloc cannot read the machine's topology");
	const int status = smalti_topology_hardware(topology, machine, error);
	hwloc_topology_destroy(machine);
	read_isa(topology);
	return status < 0 ? -1 : smalti_topology_libraries(topology, error);
}

struct smalti_topology *smalti_topology_machine(struct smalti_error *error)
{
	struct smalti_topology *topology = smalti_calloc(1, sizeof(*topology), error);
	if (topology && fill_alone(topology, error) < 0) {
		smalti_topology_free(topology);
		return NULL;
	}
	return topology;
}

int smalti_topology_read(struct smalti_session *session, struct smalti_topology **topology,
			 struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(topology, "topology", error) < 0)
		return -1;
	*topology = NULL;
	if (smalti_check_given(session, "session", error) < 0)
		return -1;
	struct smalti_topology *fresh = smalti_calloc(1, sizeof(*fresh), error);
	if (!fresh)
		return -1;
	if (fill(fresh, error) < 0) {
		smalti_topology_free(fresh);
		return -1;
	}
	*topology = fresh;
	return 0;
}

void smalti_topology_free(struct smalti_topology *topology)
{
	if (!topology)
		return;
	free(topology->caches);
	free(topology->numa_nodes);
	free(topology->gpus);
	free(topology->workers);
	free(topology->memory_nodes);
	free(topology->links);
	free(topology->rates);
	free(topology->libraries);
	free(topology->policies);
	free(topology);
}
