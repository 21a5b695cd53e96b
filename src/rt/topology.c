/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/topology.h"

#include "base/alloc.h"
#include "kernels/isa.h"
#include "rt/session.h"

#include <stdio.h>
#include <stdlib.h>

static int fill(struct smalti_topology *topology, struct smalti_error *error)
{
	snprintf(topology->features, sizeof(topology->features), "%s", smalti_isa_features());
	snprintf(topology->isa, sizeof(topology->isa), "%s", smalti_isa_name(smalti_isa()));
	const char *limit = getenv("SMALTI_MAX_ISA");
	snprintf(topology->max_isa, sizeof(topology->max_isa), "%s", limit ? limit : "");
	if (smalti_topology_hardware(topology, error) < 0 || smalti_topology_runtime(topology, error) < 0 ||
	    smalti_topology_libraries(topology, error) < 0)
		return -1;
	return smalti_topology_rates(topology, error);
}

int smalti_topology_read(struct smalti_session *session, struct smalti_topology **topology,
			 struct smalti_error *error)
{
	*topology = NULL;
	if (!session)
		return smalti_fail(error, SMALTI_EINVAL, "the topology is read from an open session");
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
