/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/device.h"

#include <starpu.h>

/* The beginning of each driver's own form of a device. */
struct smalti_device {
	const struct smalti_device_driver *driver;
	unsigned memory_node;
	double speed; /* about how many f32 operations a second; open() sets it */
	bool tf32;    /* products of f32 may use TF32; set before the first */
	/* device_memory.c */
	int64_t share, held; /* bytes that scratch and locals may take, and do */
	int lane;            /* whose scratch and locals are taken */
	struct smalti_device_memory scratch[SMALTI_DEVICE_LANES][SMALTI_DEVICE_SCRATCH];
	unsigned in_use; /* bit s: the step that runs has scratch s */
	/* Whether commands are recorded, not executed: meanwhile no memory is allocated or released; and
	 * whether a command could not be recorded. */
	bool records, lacks;
	int64_t releases; /* of memory that recorded commands may use */
	int64_t repeats;  /* of recorded commands */
	struct smalti_device_local *locals;
	int local_count;
};

/* A driver: its implementations of devices/device.h. Only the device's worker calls those after `close`,
 * except release(), which closing calls, too. */
struct smalti_device_driver {
	enum starpu_worker_archtype worker;
	unsigned operands;          /* bit d: products take operands of dtype d; they always take f32 */
	int64_t (*available)(void); /* number of available devices; NULL: devices are used only on request */
	int64_t (*memory)(void);    /* bytes of the smallest device, before StarPU begins; NULL: not known */
	struct smalti_device *(*open)(int worker, struct smalti_error *error);
	void (*close)(struct smalti_device *device); /* frees it; it has no scratch or locals */
	int (*launch)(struct smalti_device *device, const struct smalti_launch *launch,
		      const struct smalti_device_memory *const *buffers, int count, const void *arguments,
		      size_t argument_bytes, struct smalti_error *error);
	/* See devices/device.h; NULL: the device cannot repeat. */
	int (*repeat)(struct smalti_device *device, uint64_t key, const struct smalti_device_work *work,
		      struct smalti_error *error);
	/* See devices/device.h; NULL: an operation waits for all before it. */
	void (*follow)(struct smalti_device *device, const int behind[SMALTI_DEVICE_LANES]);
	/* Waits until its commands so far have ended. */
	int (*finish)(struct smalti_device *device, struct smalti_error *error);
	/* See devices/device.h. Any thread. NULL: not known. */
	double (*utilisation)(const struct smalti_device *device, double since);
	/* Tells whether products make this, other than f32 of floating point without a bias or GELU; NULL:
	 * never. */
	bool (*makes)(const struct smalti_device_product *product);
	int (*product)(struct smalti_device *device, const struct smalti_device_product *product,
		       const struct smalti_device_memory *x, const struct smalti_device_memory *w,
		       const struct smalti_device_memory *y, struct smalti_error *error);
	/* Only for what the `has` or `attends` function accepts; NULL: none. @{ */
	bool (*has_convolution)(struct smalti_device *device, const struct smalti_device_convolution *c);
	int (*convolve)(struct smalti_device *device, const struct smalti_device_convolution *c,
			const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			const struct smalti_device_memory *y, struct smalti_error *error);
	bool (*has_sdpa)(struct smalti_device *device, const struct smalti_device_sdpa *sdpa);
	int (*sdpa)(struct smalti_device *device, const struct smalti_device_sdpa *sdpa,
		    const struct smalti_device_memory *q, const struct smalti_device_memory *kv,
		    const struct smalti_device_memory *bias, float scale,
		    const struct smalti_device_memory *y, struct smalti_error *error);
	bool (*attends_tile)(struct smalti_device *device, const struct smalti_device_attend_tile *a);
	int (*attend_tile)(struct smalti_device *device, const struct smalti_device_attend_tile *a,
			   struct smalti_error *error);
	/* @} */
	void *(*allocate)(struct smalti_device *device, int64_t bytes, struct smalti_error *error);
	/* Frees the memory after the commands before have ended. */
	void (*release)(struct smalti_device *device, void *memory);
};

/* smalti_simulated is the driver of simulated GPUs. */
extern const struct smalti_device_driver smalti_opencl, smalti_cuda, smalti_simulated;

/* Take and return the device's share of its memory. @{ */
void smalti_device_memory_open(struct smalti_device *device);
void smalti_device_memory_close(struct smalti_device *device);
/* @} */

/* Allocate and release memory of the share. Unused memory is released when it gets scarce. Releasing an empty
 * one does nothing. @{ */
int smalti_device_allocate(struct smalti_device *device, struct smalti_device_memory *memory, int64_t bytes,
			   struct smalti_error *error);
void smalti_device_release(struct smalti_device *device, struct smalti_device_memory *memory);
/* @} */
