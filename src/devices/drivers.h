/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/device.h"
#include "smalti/session.h"

/* The drivers of devices, as sessions see them: how many devices of each, and what StarPU has to know.
 * Drivers have numbers from 0 on. */

struct starpu_codelet;
struct starpu_conf;

enum { SMALTI_DRIVERS = 2 };
struct smalti_device_counts {
	int64_t of[SMALTI_DRIVERS], sum; /* at most */
	int64_t min[SMALTI_DRIVERS];     /* smaller, where all available devices were requested */
};

/* Counts the devices that the options ask for, unless the user's variables say otherwise. SMALTI_EINVAL, or
 * SMALTI_ENODEV for a driver that was not built. */
int smalti_devices_count(const struct smalti_session_options *options, struct smalti_device_counts *counts,
			 struct smalti_error *error);

/* Names what all devices of a driver have in common. */
enum smalti_device_trait {
	SMALTI_DEVICES_LARGE = 1,      /* few large tasks suit them best */
	SMALTI_DEVICES_TF32 = 1 << 1,  /* they multiply f32 by units of TF32, too */
	SMALTI_DEVICES_PIN = 1 << 2,   /* copies are fast from pinned pages of main memory alone */
	SMALTI_DEVICES_PIECES = 1 << 3 /* StarPU takes their memory in pieces of 128 MB */
};
/* Tells whether the devices of a driver have the trait. */
bool smalti_driver_has(int driver, enum smalti_device_trait trait);
/* Tells whether any of the devices has the trait. */
bool smalti_devices_have(const struct smalti_device_counts *counts, enum smalti_device_trait trait);
/* Returns the bytes of the smallest of the devices with the trait, before StarPU starts; INT64_MAX: not
 * known. */
int64_t smalti_devices_min_memory(const struct smalti_device_counts *counts, enum smalti_device_trait trait);

/* StarPU's limit on a driver's devices in megabytes: the variable for all of them; for one it is the prefix,
 * _N and _MEM. */
struct smalti_device_limit {
	const char *prefix, *variable;
};
enum { SMALTI_MIN_DEVICE = 2 }; /* megabytes */
const struct smalti_device_limit *smalti_devices_limit(int driver);

/* Tells StarPU the numbers of devices. */
void smalti_devices_configure(const struct smalti_device_counts *counts, struct starpu_conf *conf);
/* Has a codelet run on the devices of all drivers by one function, which waits for none of its commands. */
void smalti_devices_run(struct starpu_codelet *codelet, void (*run)(void *interfaces[], void *argument));
/* Tells whether a memory node of StarPU is that of a device. */
bool smalti_devices_own(unsigned memory_node);

/* Opens the devices of StarPU's workers, by the workers' numbers (NULL: a CPU's). StarPU is running. NULL
 * with SMALTI_ENODEV (too few), SMALTI_EUNSUPPORTED or SMALTI_ENOMEM. */
struct smalti_device **smalti_devices_open(const struct smalti_device_counts *counts,
					   struct smalti_error *error);
/* Closes the devices before StarPU stops; workers must be idle. NULL is allowed. */
void smalti_devices_close(struct smalti_device **devices);
