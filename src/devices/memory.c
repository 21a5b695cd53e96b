/* SPDX-License-Identifier: Apache-2.0 */
/* A device's memory beside StarPU's tiles: scratch of operations, and tiles that live in one task. They get a
 * share of the memory from the beginning: StarPU asks for ever for memory that is not there, so they must not
 * take what tiles need. */
#include "devices/driver.h"

static const int64_t enough = INT64_C(4) << 30;

/* Gives the workspace `enough`, but an eighth at least and half at most. */
struct smalti_device_shares smalti_device_shares_of(int64_t total)
{
	const int64_t workspace = smalti_min(total / 2, smalti_max(enough, total / 8)),
		      tiles = total - workspace;
	return (struct smalti_device_shares){workspace, tiles, smalti_min(workspace, tiles) / 2};
}

struct smalti_device_shares smalti_device_shares(unsigned memory_node)
{
	return smalti_device_shares_of((int64_t)starpu_memory_get_total(memory_node));
}

int64_t smalti_device_room(const struct smalti_device *device)
{
	return device->share / 4;
}

void smalti_device_memory_open(struct smalti_device *device)
{
	device->share = smalti_device_shares(device->memory_node).workspace;
	starpu_memory_allocate(device->memory_node, (size_t)device->share, STARPU_MEMORY_OVERFLOW);
}

static int64_t beyond_share(const struct smalti_device *device)
{
	return device->held > device->share ? device->held - device->share : 0;
}

int64_t smalti_device_tiles(const struct smalti_device *device)
{
	const int64_t counted = (int64_t)starpu_memory_get_used(device->memory_node);
	return counted - device->share - beyond_share(device);
}

int64_t smalti_device_in_use(const struct smalti_device *device)
{
	return smalti_device_tiles(device) + device->held;
}

/* Counts the memory held. StarPU counts what exceeds the share. */
static void count(struct smalti_device *device, int64_t bytes)
{
	const int64_t before = beyond_share(device);
	device->held += bytes;
	const int64_t more = beyond_share(device) - before;
	if (more > 0)
		starpu_memory_allocate(device->memory_node, (size_t)more, STARPU_MEMORY_OVERFLOW);
	if (more < 0)
		starpu_memory_deallocate(device->memory_node, (size_t)-more);
}

void smalti_device_release(struct smalti_device *device, struct smalti_device_memory *memory)
{
	if (!memory->memory)
		return;
	device->driver->release(device, memory->memory);
	device->releases++;
	count(device, -memory->bytes);
	*memory = (struct smalti_device_memory){NULL, 0};
}

/* A tile that lives in one task. They are kept in a list: most tasks reuse the memory of similar ones. */
struct smalti_device_local {
	struct smalti_device_memory memory; /* first: callers have its address */
	int lane;
	bool taken;
	struct smalti_device_local *next;
};

/* Releases all locals that no task has, but keeps `max`. */
static void release_locals(struct smalti_device *device, int max)
{
	for (struct smalti_device_local **at = &device->locals; *at && device->local_count > max;) {
		struct smalti_device_local *local = *at;
		if (local->taken) {
			at = &local->next;
			continue;
		}
		*at = local->next;
		smalti_device_release(device, &local->memory);
		free(local);
		device->local_count--;
	}
}

static void release_idle(struct smalti_device *device)
{
	for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++)
		for (int slot = 0; slot < SMALTI_DEVICE_SCRATCH; slot++)
			if (lane != device->lane || !(device->in_use >> slot & 1))
				smalti_device_release(device, &device->scratch[lane][slot]);
	release_locals(device, 0);
}

int smalti_device_allocate(struct smalti_device *device, struct smalti_device_memory *memory, int64_t bytes,
			   struct smalti_error *error)
{
	if (device->records)
		return smalti_fail(error, SMALTI_ENOMEM, "memory is asked for while commands are recorded");
	if (device->held + bytes > device->share)
		release_idle(device);
	memory->memory = device->driver->allocate(device, bytes, error);
	if (!memory->memory)
		return -1;
	memory->bytes = bytes;
	count(device, bytes);
	return 0;
}

void smalti_device_set_lane(struct smalti_device *device, int lane)
{
	device->lane = lane;
	device->in_use = 0;
}

void smalti_device_begin_step(struct smalti_device *device)
{
	device->in_use = 0;
}

const struct smalti_device_memory *smalti_device_scratch(struct smalti_device *device, int slot,
							 int64_t bytes, struct smalti_error *error)
{
	struct smalti_device_memory *scratch = &device->scratch[device->lane][slot];
	device->in_use |= 1u << slot;
	if (scratch->memory && scratch->bytes >= bytes)
		return scratch;
	if (!device->records)
		smalti_device_release(device, scratch);
	return smalti_device_allocate(device, scratch, bytes, error) == 0 ? scratch : NULL;
}

static struct smalti_device_local *add_local(struct smalti_device *device, int64_t bytes,
					     struct smalti_error *error)
{
	struct smalti_device_local *local = smalti_calloc(1, sizeof(*local), error);
	if (!local || smalti_device_allocate(device, &local->memory, bytes, error) < 0) {
		free(local);
		return NULL;
	}
	local->lane = device->lane;
	local->next = device->locals;
	device->locals = local;
	device->local_count++;
	return local;
}

const struct smalti_device_memory *smalti_device_take(struct smalti_device *device, int64_t bytes,
						      struct smalti_error *error)
{
	struct smalti_device_local *local = device->locals;
	while (local && (local->taken || local->memory.bytes != bytes || local->lane != device->lane))
		local = local->next;
	if (!local)
		local = add_local(device, bytes, error);
	if (!local)
		return NULL;
	local->taken = true;
	return &local->memory;
}

void smalti_device_give(struct smalti_device *device, const struct smalti_device_memory *memory)
{
	enum { MAX_KEPT = 64 * SMALTI_DEVICE_LANES };
	((struct smalti_device_local *)(uintptr_t)memory)->taken = false;
	if (!device->records)
		release_locals(device, MAX_KEPT);
}

void smalti_device_memory_close(struct smalti_device *device)
{
	device->in_use = 0;
	release_idle(device);
	starpu_memory_deallocate(device->memory_node, (size_t)device->share);
}
