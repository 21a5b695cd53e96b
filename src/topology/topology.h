/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "smalti/topology.h"

struct hwloc_topology;

/* Describes the machine, instruction sets and libraries, without a session. Free with
 * smalti_topology_free(). */
struct smalti_topology *smalti_topology_machine(struct smalti_error *error);

/* smalti_topology_read() calls these parts; each fills its own fields. */

/* Describes the machine, from a loaded topology. */
int smalti_topology_hardware(struct smalti_topology *topology, struct hwloc_topology *machine,
			     struct smalti_error *error);
/* Describes workers, memory nodes, links and policies. */
int smalti_topology_runtime(struct smalti_topology *topology, struct smalti_error *error);
int smalti_topology_libraries(struct smalti_topology *topology, struct smalti_error *error);
int smalti_topology_rates(struct smalti_topology *topology, struct smalti_error *error);
