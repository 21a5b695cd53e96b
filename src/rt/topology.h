/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "smalti/topology.h"

struct hwloc_topology;

/* What there is to tell without a session: the machine, instruction sets, libraries. Free with
 * smalti_topology_free(). */
struct smalti_topology *smalti_topology_machine(struct smalti_error *error);

/* The parts that smalti_topology_read() puts together; each fills its own fields. */

/* The machine, from a topology that is loaded. */
int smalti_topology_hardware(struct smalti_topology *topology, struct hwloc_topology *machine,
			     struct smalti_error *error);
/* Workers, memory nodes, links, policies. */
int smalti_topology_runtime(struct smalti_topology *topology, struct smalti_error *error);
int smalti_topology_libraries(struct smalti_topology *topology, struct smalti_error *error);
int smalti_topology_rates(struct smalti_topology *topology, struct smalti_error *error);
