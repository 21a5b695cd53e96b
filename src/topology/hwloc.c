/* SPDX-License-Identifier: Apache-2.0 */
/* Reads packages, cores, caches, NUMA nodes and GPUs. */
#include "host/machine.h"
#include "topology/topology.h"

#include <hwloc.h>

/* PCI base classes. */
enum { DISPLAY_CONTROLLER = 0x03, PROCESSING_ACCELERATOR = 0x12 };

static int count_type(hwloc_topology_t machine, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(machine, type);
	return count > 0 ? count : 0;
}

static void add_cache(struct smalti_topology *topology, const struct hwloc_cache_attr_s *cache)
{
	static const char *const kinds[] = {[HWLOC_OBJ_CACHE_UNIFIED] = "unified",
					    [HWLOC_OBJ_CACHE_DATA] = "data",
					    [HWLOC_OBJ_CACHE_INSTRUCTION] = "instruction"};
	const char *kind = kinds[cache->type];
	for (int64_t i = 0; i < topology->cache_count; i++) {
		struct smalti_topology_cache *seen = &topology->caches[i];
		if (seen->level == cache->depth && seen->bytes == (int64_t)cache->size &&
		    !strcmp(seen->kind, kind)) {
			seen->count++;
			return;
		}
	}
	struct smalti_topology_cache *fresh = &topology->caches[topology->cache_count++];
	fresh->level = cache->depth;
	fresh->bytes = (int64_t)cache->size;
	fresh->count = 1;
	snprintf(fresh->kind, sizeof(fresh->kind), "%s", kind);
}

static int read_caches(struct smalti_topology *topology, hwloc_topology_t machine, struct smalti_error *error)
{
	int depths = hwloc_topology_get_depth(machine), count = 0;
	for (int depth = 0; depth < depths; depth++)
		if (hwloc_obj_type_is_cache(hwloc_get_depth_type(machine, depth)))
			count += (int)hwloc_get_nbobjs_by_depth(machine, depth);
	if (!count)
		return 0;
	topology->caches = smalti_calloc(count, sizeof(*topology->caches), error);
	if (!topology->caches)
		return -1;
	for (int depth = depths - 1; depth >= 0; depth--) {
		if (!hwloc_obj_type_is_cache(hwloc_get_depth_type(machine, depth)))
			continue;
		for (hwloc_obj_t cache = NULL; (cache = hwloc_get_next_obj_by_depth(machine, depth, cache));)
			add_cache(topology, &cache->attr->cache);
	}
	return 0;
}

static int read_numa(struct smalti_topology *topology, hwloc_topology_t machine, struct smalti_error *error)
{
	int count = count_type(machine, HWLOC_OBJ_NUMANODE);
	if (!count)
		return 0;
	topology->numa_nodes = smalti_calloc(count, sizeof(*topology->numa_nodes), error);
	if (!topology->numa_nodes)
		return -1;
	for (hwloc_obj_t node = NULL;
	     (node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node));) {
		int cores = hwloc_get_nbobjs_inside_cpuset_by_type(machine, node->cpuset, HWLOC_OBJ_CORE);
		topology->numa_nodes[topology->numa_node_count++] =
		    (struct smalti_topology_numa){.node = node->logical_index,
						  .bytes = (int64_t)node->attr->numanode.local_memory,
						  .cores = cores};
	}
	return 0;
}

static bool is_gpu(hwloc_obj_t device)
{
	int class = device->attr->pcidev.class_id >> 8;
	return class == DISPLAY_CONTROLLER || class == PROCESSING_ACCELERATOR;
}

static void describe_gpu(struct smalti_topology_gpu *gpu, hwloc_obj_t device)
{
	const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
	snprintf(gpu->bus, sizeof(gpu->bus), "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
	const char *vendor = hwloc_obj_get_info_by_name(device, "PCIVendor");
	const char *model = hwloc_obj_get_info_by_name(device, "PCIDevice");
	snprintf(gpu->name, sizeof(gpu->name), "%s%s%s", vendor ? vendor : "", vendor && model ? " " : "",
		 model ? model : "");
	for (hwloc_obj_t child = device->io_first_child; child; child = child->next_sibling)
		smalti_append(gpu->devices, sizeof(gpu->devices), " ", "%s", child->name ? child->name : "");
}

static int read_gpus(struct smalti_topology *topology, hwloc_topology_t machine, struct smalti_error *error)
{
	int count = 0;
	for (hwloc_obj_t device = NULL; (device = hwloc_get_next_pcidev(machine, device));)
		count += is_gpu(device);
	if (!count)
		return 0;
	topology->gpus = smalti_calloc(count, sizeof(*topology->gpus), error);
	if (!topology->gpus)
		return -1;
	for (hwloc_obj_t device = NULL; (device = hwloc_get_next_pcidev(machine, device));)
		if (is_gpu(device))
			describe_gpu(&topology->gpus[topology->gpu_count++], device);
	return 0;
}

int smalti_topology_hardware(struct smalti_topology *topology, struct hwloc_topology *machine,
			     struct smalti_error *error)
{
	topology->packages = count_type(machine, HWLOC_OBJ_PACKAGE);
	const struct smalti_machine_cpus cpus = smalti_machine_cpus_of(machine);
	if (!cpus.threads)
		return smalti_fail(error, SMALTI_ENODEV, "hwloc sees no processor");
	topology->cores = cpus.cores;
	topology->threads = cpus.threads;
	topology->allowed_cores = cpus.allowed_cores;
	topology->memory = smalti_machine_memory();
	hwloc_obj_t package = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PACKAGE, 0);
	const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
	snprintf(topology->cpu, sizeof(topology->cpu), "%s", model ? model : "");
	if (read_caches(topology, machine, error) < 0 || read_numa(topology, machine, error) < 0)
		return -1;
	return read_gpus(topology, machine, error);
}
