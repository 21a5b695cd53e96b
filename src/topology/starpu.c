/* SPDX-License-Identifier: Apache-2.0 */
/* Reads StarPU's workers, memory nodes, links between them, and scheduling policies. */
#include "session/policies.h"
#include "topology/topology.h"

#include <hwloc.h>
#include <starpu.h>

/* Returns the core that the worker is bound to, -1 when it is free to move. */
static int64_t bound_core(int worker)
{
	if (starpu_worker_get_bindid(worker) < 0)
		return -1;
	hwloc_topology_t machine = starpu_get_hwloc_topology();
	hwloc_obj_t place = starpu_worker_get_hwloc_obj(worker);
	hwloc_obj_t core = place ? hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_CORE, place) : NULL;
	if (!core)
		core = place; /* it is a core, or the hardware thread has no core above */
	return core ? (int64_t)core->logical_index : -1;
}

static int read_workers(struct smalti_topology *topology, struct smalti_error *error)
{
	int count = (int)starpu_worker_get_count();
	topology->workers = smalti_calloc(count, sizeof(*topology->workers), error);
	if (!topology->workers)
		return -1;
	for (int id = 0; id < count; id++) {
		struct smalti_topology_worker *worker = &topology->workers[topology->worker_count++];
		starpu_worker_get_name(id, worker->name, sizeof(worker->name));
		snprintf(worker->kind, sizeof(worker->kind), "%s",
			 starpu_worker_get_type_as_string(starpu_worker_get_type(id)));
		worker->core = bound_core(id);
		worker->memory_node = starpu_worker_get_memory_node((unsigned)id);
	}
	return 0;
}

static int read_memory_nodes(struct smalti_topology *topology, struct smalti_error *error)
{
	unsigned count = starpu_memory_nodes_get_count();
	topology->memory_nodes = smalti_calloc(count, sizeof(*topology->memory_nodes), error);
	if (!topology->memory_nodes)
		return -1;
	for (unsigned id = 0; id < count; id++) {
		struct smalti_topology_memory_node *node =
		    &topology->memory_nodes[topology->memory_node_count++];
		starpu_memory_node_get_name(id, node->name, sizeof(node->name));
		starpu_ssize_t bytes = starpu_memory_get_total(id);
		node->bytes = bytes > 0 ? (int64_t)bytes : 0;
		if (starpu_node_get_kind(id) == STARPU_CPU_RAM && !node->bytes)
			node->bytes = topology->memory;
	}
	return 0;
}

/* Reads the links. StarPU counts in MB/s and µs. */
static int read_links(struct smalti_topology *topology, struct smalti_error *error)
{
	int64_t nodes = topology->memory_node_count;
	if (nodes < 2)
		return 0;
	topology->links = smalti_calloc(nodes * (nodes - 1), sizeof(*topology->links), error);
	if (!topology->links)
		return -1;
	for (int64_t from = 0; from < nodes; from++)
		for (int64_t to = 0; to < nodes; to++) {
			if (from == to)
				continue;
			topology->links[topology->link_count++] = (struct smalti_topology_link){
			    .from = from,
			    .to = to,
			    .bandwidth = 1e6 * starpu_transfer_bandwidth((unsigned)from, (unsigned)to),
			    .latency = 1e-6 * starpu_transfer_latency((unsigned)from, (unsigned)to),
			};
		}
	return 0;
}

static int read_policies(struct smalti_topology *topology, struct smalti_error *error)
{
	const struct starpu_sched_policy *active = starpu_sched_get_sched_policy();
	int count = 0;
	while (smalti_policy(count))
		count++;
	topology->policies = smalti_calloc(count, sizeof(*topology->policies), error);
	if (!topology->policies)
		return -1;
	for (; topology->policy_count < count; topology->policy_count++) {
		const struct starpu_sched_policy *from = smalti_policy((int)topology->policy_count);
		struct smalti_topology_policy *policy = &topology->policies[topology->policy_count];
		snprintf(policy->name, sizeof(policy->name), "%s", from->policy_name);
		snprintf(policy->description, sizeof(policy->description), "%s",
			 from->policy_description ? from->policy_description : "");
		policy->active = active && !strcmp(active->policy_name, from->policy_name);
	}
	return 0;
}

int smalti_topology_runtime(struct smalti_topology *topology, struct smalti_error *error)
{
	if (read_workers(topology, error) < 0 || read_memory_nodes(topology, error) < 0 ||
	    read_links(topology, error) < 0)
		return -1;
	return read_policies(topology, error);
}
