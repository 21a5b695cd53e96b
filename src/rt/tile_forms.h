/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/device.h"
#include "rt/op.h"

struct smalti_task_group;

/* A read-only tile that has its own form on each kind of device. A form is made where it is first read, or
 * when a device fetches it, and is freed with the tile: unread forms are never made, and a form is never
 * copied back. */
struct smalti_tile_forms {
	const void *source; /* input of `make`; it outlives the tile */
	int64_t bytes[SMALTI_DEVICE_KINDS];
	/* Fills `bytes` of `memory`, in main memory, with the form for a kind. Any thread, and several kinds
	 * at a time. */
	int (*make)(const void *source, enum smalti_device_kind kind, void *memory, int64_t bytes,
		    struct smalti_error *error);
};

/* The forms of one tile. */
struct smalti_formed;

/* Makes the forms; `task_group` fails when a device's form cannot be made. */
struct smalti_formed *smalti_formed_new(struct smalti_task_group *task_group,
					const struct smalti_tile_forms *forms, struct smalti_error *error);
/* Returns the bytes of the form for a kind. */
int64_t smalti_formed_bytes(const struct smalti_formed *formed, enum smalti_device_kind kind);
/* Frees forms that no handle has. NULL is allowed. */
void smalti_formed_free(struct smalti_formed *formed);
/* Registers a handle (starpu_data_handle_t), which frees the forms when it is unregistered. */
void smalti_formed_register(struct smalti_formed *formed, void *handle);

/* Returns the forms behind a buffer of a task; NULL for other tiles. */
struct smalti_formed *smalti_formed_of(const void *interface);
/* Returns the CPU's form, and makes it if necessary. NULL with an error if that fails. */
const void *smalti_formed_memory(struct smalti_formed *formed, struct smalti_error *error);
/* Returns the form behind a buffer of a task on a device. */
struct smalti_device_memory smalti_formed_device_memory(const void *interface);
