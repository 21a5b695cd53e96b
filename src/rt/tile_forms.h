/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device.h"
#include "rt/op.h"

struct smalti_task_group;

/* A read-only tile that each kind of device has in a form of its own. A form is made where it is first read,
 * or when a device fetches it, and goes with the tile: what nobody reads is never made, and what was made is
 * never copied back. */
struct smalti_tile_forms {
	const void *source; /* what `make` makes them of; it outlives the tile */
	int64_t bytes[SMALTI_DEVICE_KINDS];
	/* Fills `bytes` of `memory`, in main memory, with the form of a kind. On any thread, of several kinds
	 * at a time. */
	int (*make)(const void *source, enum smalti_device_kind kind, void *memory, int64_t bytes,
		    struct smalti_error *error);
};

/* The forms of one tile. */
struct smalti_formed;

/* `task_group` fails when a device's form cannot be made. */
struct smalti_formed *smalti_formed_new(struct smalti_task_group *task_group,
					const struct smalti_tile_forms *forms, struct smalti_error *error);
/* Of its form for a kind. */
int64_t smalti_formed_bytes(const struct smalti_formed *formed, enum smalti_device_kind kind);
/* Of one that no handle has. NULL is allowed. */
void smalti_formed_free(struct smalti_formed *formed);
/* Registers a handle (starpu_data_handle_t), which frees it when it is unregistered. */
void smalti_formed_register(struct smalti_formed *formed, void *handle);

/* In a slave, before starpu_init(): has StarPU know the kind of tile by the number that it has in the master.
 */
void smalti_forms_announce(void);

/* What is behind a buffer of a task, if it is of this kind; else NULL. */
struct smalti_formed *smalti_formed_of(const void *interface);
/* The CPU's form, made now if it was not yet. NULL with an error when it cannot be. */
const void *smalti_formed_memory(struct smalti_formed *formed, struct smalti_error *error);
/* The form that a device or a slave has, behind a buffer of a task there. */
struct smalti_device_memory smalti_formed_device_memory(const void *interface);
