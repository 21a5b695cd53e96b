/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_TOPOLOGY_H
#define SMALTI_RT_TOPOLOGY_H

#include "base/error.h"
#include "smalti/topology.h"

/* The parts that smalti_topology_read() puts together; each fills its own fields. */

/* The machine, from the topology that StarPU loaded. */
int smalti_topology_hardware(struct smalti_topology *topology, struct smalti_error *error);
/* Workers, memory nodes, links, policies. */
int smalti_topology_runtime(struct smalti_topology *topology, struct smalti_error *error);
int smalti_topology_libraries(struct smalti_topology *topology, struct smalti_error *error);
int smalti_topology_rates(struct smalti_topology *topology, struct smalti_error *error);

#endif
