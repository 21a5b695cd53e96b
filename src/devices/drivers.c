/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/drivers.h"
#include "devices/driver.h"

#include <stddef.h>

#if defined(SMALTI_SIMGRID)
#define CUDA_DRIVER &smalti_simulated
#elif defined(SMALTI_CUDA)
#define CUDA_DRIVER &smalti_cuda
#else
#define CUDA_DRIVER NULL
#endif
#ifdef SMALTI_OPENCL
#define OPENCL_DRIVER &smalti_opencl
#else
#define OPENCL_DRIVER NULL
#endif

static const struct {
	const char *name;
	const struct smalti_device_driver *driver; /* NULL: it was not built */
	size_t wanted;                             /* field of the session's options */
	const char *count;                         /* StarPU's variable for their number */
	int64_t max;
	struct smalti_device_limit limit;
	unsigned traits; /* enum smalti_device_trait */
	/* StarPU's kinds of memory and worker, and its fields for the number, the function and its flags. */
	enum starpu_node_kind memory;
	uint32_t where;
	size_t conf, function, flags;
	char asynchronous;
	const char *absent, *build; /* what to do */
} drivers[SMALTI_DRIVERS] = {
    {.name = "OpenCL",
     .driver = OPENCL_DRIVER,
     .wanted = offsetof(struct smalti_session_options, opencl),
     .count = "STARPU_NOPENCL",
     .max = STARPU_MAXOPENCLDEVS,
     .limit = {"STARPU_LIMIT_OPENCL", "STARPU_LIMIT_OPENCL_MEM"},
     .memory = STARPU_OPENCL_RAM,
     .where = STARPU_OPENCL,
     .conf = offsetof(struct starpu_conf, nopencl),
     .function = offsetof(struct starpu_codelet, opencl_funcs),
     .flags = offsetof(struct starpu_codelet, opencl_flags),
     .asynchronous = STARPU_OPENCL_ASYNC,
     .absent = "install the device's driver (clinfo -l lists devices), or set STARPU_OPENCL_ON_CPUS=1 for a "
	       "CPU's, such as PoCL",
     .build = "run 'scripts/packages opencl' and build it again"},
    {.name = "CUDA",
     .driver = CUDA_DRIVER,
     .wanted = offsetof(struct smalti_session_options, cuda),
     .count = "STARPU_NCUDA",
     .max = STARPU_MAXCUDADEVS,
     .limit = {"STARPU_LIMIT_CUDA", "STARPU_LIMIT_CUDA_MEM"},
     .traits = SMALTI_DEVICES_LARGE | SMALTI_DEVICES_TF32 | SMALTI_DEVICES_PIN | SMALTI_DEVICES_PIECES,
     .memory = STARPU_CUDA_RAM,
     .where = STARPU_CUDA,
     .conf = offsetof(struct starpu_conf, ncuda),
     .function = offsetof(struct starpu_codelet, cuda_funcs),
     .flags = offsetof(struct starpu_codelet, cuda_flags),
     .asynchronous = STARPU_CUDA_ASYNC,
     .absent =
	 "install NVIDIA's driver (nvidia-smi lists devices), or allow more by STARPU_WORKERS_CUDAID or "
	 "CUDA_VISIBLE_DEVICES",
     .build = "build it with 'scripts/build --cuda'"},
};

static int count(int i, int64_t wanted, int64_t *found, struct smalti_error *error)
{
	const char *name = drivers[i].name, *forced = getenv(drivers[i].count);
	const struct smalti_device_driver *built = drivers[i].driver;
	if (wanted < -1 || (built && wanted > drivers[i].max))
		return smalti_fail(error, SMALTI_EINVAL, "%s devices: expected 0 to %lld, found %lld", name,
				   (long long)drivers[i].max, (long long)wanted);
	if (wanted > 0 && !built)
		return smalti_fail(error, SMALTI_ENODEV, "%s devices: this Smalti was built without %s; %s",
				   name, name, drivers[i].build);
	*found = 0;
	if (built && forced)
		*found = strtoll(forced, NULL, 10);
	else if (wanted >= 0)
		*found = wanted;
	else if (built && built->available)
		*found = built->available();
	return 0;
}

int smalti_devices_count(const struct smalti_session_options *options, struct smalti_device_counts *counts,
			 struct smalti_error *error)
{
	*counts = (struct smalti_device_counts){.sum = 0};
	for (int i = 0; i < SMALTI_DRIVERS; i++) {
		const int64_t wanted =
		    *(const int64_t *)(const void *)((const char *)options + drivers[i].wanted);
		if (count(i, wanted, &counts->of[i], error) < 0)
			return -1;
		counts->sum += counts->of[i];
		counts->min[i] = wanted < 0 && !getenv(drivers[i].count) ? 0 : counts->of[i];
	}
	return 0;
}

bool smalti_driver_has(int driver, enum smalti_device_trait trait)
{
	return drivers[driver].traits & trait;
}

bool smalti_devices_have(const struct smalti_device_counts *counts, enum smalti_device_trait trait)
{
	for (int i = 0; i < SMALTI_DRIVERS; i++)
		if (counts->of[i] > 0 && smalti_driver_has(i, trait))
			return true;
	return false;
}

int64_t smalti_devices_min_memory(const struct smalti_device_counts *counts, enum smalti_device_trait trait)
{
	int64_t min = INT64_MAX;
	for (int i = 0; i < SMALTI_DRIVERS; i++)
		if (counts->of[i] > 0 && smalti_driver_has(i, trait) && drivers[i].driver->memory)
			min = smalti_min(min, drivers[i].driver->memory());
	return min;
}

const struct smalti_device_limit *smalti_devices_limit(int driver)
{
	return &drivers[driver].limit;
}

void smalti_devices_configure(const struct smalti_device_counts *counts, struct starpu_conf *conf)
{
	for (int i = 0; i < SMALTI_DRIVERS; i++)
		*(int *)(void *)((char *)conf + drivers[i].conf) = (int)counts->of[i];
}

void smalti_devices_run(struct starpu_codelet *codelet, void (*run)(void *interfaces[], void *argument))
{
	for (int i = 0; i < SMALTI_DRIVERS; i++) {
		char *fields = (void *)codelet;
		codelet->where |= drivers[i].where;
		memcpy(fields + drivers[i].function, &run, sizeof(run));
		fields[drivers[i].flags] = drivers[i].asynchronous;
	}
}

bool smalti_devices_own(unsigned memory_node)
{
	for (int i = 0; i < SMALTI_DRIVERS; i++)
		if (starpu_node_get_kind((int)memory_node) == drivers[i].memory)
			return true;
	return false;
}

static int check_found(const struct smalti_device_counts *counts, struct smalti_error *error)
{
	for (int i = 0; i < SMALTI_DRIVERS; i++) {
		if (counts->min[i] == 0)
			continue;
		const int64_t found = starpu_worker_get_count_by_type(drivers[i].driver->worker);
		if (found < counts->min[i])
			return smalti_fail(error, SMALTI_ENODEV, "%s devices: expected %lld, found %lld: %s",
					   drivers[i].name, (long long)counts->min[i], (long long)found,
					   drivers[i].absent);
	}
	return 0;
}

static const struct smalti_device_driver *driver_of(int worker)
{
	for (int i = 0; i < SMALTI_DRIVERS; i++)
		if (drivers[i].driver && drivers[i].driver->worker == starpu_worker_get_type(worker))
			return drivers[i].driver;
	return NULL;
}

struct smalti_device **smalti_devices_open(const struct smalti_device_counts *counts,
					   struct smalti_error *error)
{
	const int workers = (int)starpu_worker_get_count();
	if (check_found(counts, error) < 0)
		return NULL;
	struct smalti_device **devices = smalti_calloc(workers + 1, sizeof(struct smalti_device *), error);
	for (int i = 0; devices && i < workers; i++) {
		const struct smalti_device_driver *driver = driver_of(i);
		if (!driver)
			continue;
		devices[i] = driver->open(i, error);
		if (!devices[i]) {
			smalti_devices_close(devices);
			return NULL;
		}
		devices[i]->driver = driver;
		devices[i]->memory_node = starpu_worker_get_memory_node((unsigned)i);
		smalti_device_memory_open(devices[i]);
	}
	return devices;
}

void smalti_devices_close(struct smalti_device **devices)
{
	const int workers = devices ? (int)starpu_worker_get_count() : 0;
	for (int i = 0; i < workers; i++) {
		struct smalti_device *device = devices[i];
		if (!device)
			continue;
		smalti_device_memory_close(device);
		device->driver->close(device);
	}
	free(devices);
}
