/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/device_driver.h"

/* What tasks took from a device, in a list: most take what others like them gave back. */
struct smalti_device_local {
	struct smalti_device_memory memory; /* first: callers have its address */
	bool taken;
	struct smalti_device_local *next;
};

enum { MOST_KEPT = 64 };

static void release(struct smalti_device *device, struct smalti_device_local **at)
{
	struct smalti_device_local *local = *at;
	*at = local->next;
	smalti_device_release(device, &local->memory);
	free(local);
	device->local_count--;
}

static struct smalti_device_local *add(struct smalti_device *device, int64_t bytes,
				       struct smalti_error *error)
{
	struct smalti_device_local *local = smalti_calloc(1, sizeof(*local), error);
	if (!local || smalti_device_allocate(device, &local->memory, bytes, error) < 0) {
		free(local);
		return NULL;
	}
	local->next = device->locals;
	device->locals = local;
	device->local_count++;
	return local;
}

const struct smalti_device_memory *smalti_device_take(struct smalti_device *device, int64_t bytes,
						      struct smalti_error *error)
{
	struct smalti_device_local *local = device->locals;
	while (local && (local->taken || local->memory.bytes != bytes))
		local = local->next;
	if (!local)
		local = add(device, bytes, error);
	if (!local)
		return NULL;
	local->taken = true;
	return &local->memory;
}

void smalti_device_give(struct smalti_device *device, const struct smalti_device_memory *memory)
{
	((struct smalti_device_local *)(uintptr_t)memory)->taken = false;
	for (struct smalti_device_local **at = &device->locals; *at && device->local_count > MOST_KEPT;)
		if ((*at)->taken)
			at = &(*at)->next;
		else
			release(device, at);
}

void smalti_device_locals_free(struct smalti_device *device)
{
	while (device->locals)
		release(device, &device->locals);
}
