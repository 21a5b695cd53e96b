/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of simulated GPUs. */
#include "devices/driver.h"
#include "simulation/chosen.h"

static int64_t count_gpus(void)
{
	return smalti_machine_gpus(&smalti_chosen.machine);
}

static struct smalti_device *open_gpu(int worker, struct smalti_error *error)
{
	struct smalti_device *device = smalti_calloc(1, sizeof(*device), error);
	if (device)
		device->speed = smalti_machine_gpu(&smalti_chosen.machine, starpu_worker_get_devid(worker))
				    ->rates[SMALTI_PRODUCTS][smalti_chosen.precisions.of[SMALTI_PRODUCTS]];
	return device;
}

static void close_gpu(struct smalti_device *device)
{
	free(device);
}

const struct smalti_device_driver smalti_simulated = {
    .worker = STARPU_CUDA_WORKER, .available = count_gpus, .open = open_gpu, .close = close_gpu};
