/* SPDX-License-Identifier: Apache-2.0 */
/* What is common to the devices of all drivers. */
#include "rt/device.h"

#include "rt/device_driver.h"

#include <math.h>

static const struct {
	const char *name, *count; /* StarPU's variable */
	int64_t max;
	struct smalti_device_limit limit;
	const struct smalti_device_driver *driver; /* NULL: it was not built */
	const char *absent, *build;                /* what to do */
} drivers[SMALTI_DEVICE_DRIVERS] = {
    [SMALTI_OPENCL_DEVICES] = {"OpenCL",
			       "STARPU_NOPENCL",
			       STARPU_MAXOPENCLDEVS,
			       {"STARPU_LIMIT_OPENCL", "STARPU_LIMIT_OPENCL_MEM"},
#ifdef SMALTI_OPENCL
			       &smalti_opencl,
#else
			       NULL,
#endif
			       "install the device's driver (clinfo -l lists devices), or set "
			       "STARPU_OPENCL_ON_CPUS=1 for a CPU's, such as PoCL",
			       "run 'scripts/packages opencl' and build it again"},
    [SMALTI_CUDA_DEVICES] = {"CUDA",
			     "STARPU_NCUDA",
			     STARPU_MAXCUDADEVS,
			     {"STARPU_LIMIT_CUDA", "STARPU_LIMIT_CUDA_MEM"},
#if defined(SMALTI_CUDA)
			     &smalti_cuda,
#elif defined(SMALTI_SIMGRID)
			     &smalti_simulated,
#else
			     NULL,
#endif
			     "install NVIDIA's driver (nvidia-smi lists devices), or allow more by "
			     "STARPU_WORKERS_CUDAID or CUDA_VISIBLE_DEVICES",
			     "build it with 'scripts/build --cuda'"},
};

static int count(int driver, int64_t wanted, int64_t *found, struct smalti_error *error)
{
	const char *name = drivers[driver].name, *forced = getenv(drivers[driver].count);
	const struct smalti_device_driver *built = drivers[driver].driver;
	if (wanted < -1 || (built && wanted > drivers[driver].max))
		return smalti_fail(error, SMALTI_EINVAL, "%lld %s devices: expected 0 to %lld",
				   (long long)wanted, name, (long long)drivers[driver].max);
	if (wanted > 0 && !built)
		return smalti_fail(error, SMALTI_ENODEV,
				   "%lld %s devices: this Smalti was built without %s; %s", (long long)wanted,
				   name, name, drivers[driver].build);
	*found = 0;
	if (built && forced)
		*found = strtoll(forced, NULL, 10);
	else if (wanted >= 0)
		*found = wanted;
	else if (built && built->available)
		*found = built->available();
	return 0;
}

int smalti_devices_count(const int64_t wanted[SMALTI_DEVICE_DRIVERS], struct smalti_device_counts *counts,
			 struct smalti_error *error)
{
	counts->sum = 0;
	for (int driver = 0; driver < SMALTI_DEVICE_DRIVERS; driver++) {
		if (count(driver, wanted[driver], &counts->of[driver], error) < 0)
			return -1;
		counts->sum += counts->of[driver];
		counts->min[driver] =
		    wanted[driver] < 0 && !getenv(drivers[driver].count) ? 0 : counts->of[driver];
	}
	return 0;
}

const struct smalti_device_limit *smalti_devices_limit(int driver)
{
	return &drivers[driver].limit;
}

int64_t smalti_devices_min_memory(int driver)
{
	const struct smalti_device_driver *built = drivers[driver].driver;
	return built && built->memory ? built->memory() : INT64_MAX;
}

static int check_found(const struct smalti_device_counts *counts, struct smalti_error *error)
{
	for (int i = 0; i < SMALTI_DEVICE_DRIVERS; i++) {
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
	for (int i = 0; i < SMALTI_DEVICE_DRIVERS; i++)
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

void smalti_device_set_tf32(struct smalti_device *device, bool tf32)
{
	device->tf32 = tf32;
}

double smalti_device_speed(const struct smalti_device *device)
{
	return device->speed;
}

double smalti_device_utilisation(const struct smalti_device *device, double since)
{
	return device->driver->utilisation ? device->driver->utilisation(device, since) : (double)NAN;
}

int smalti_device_launch(struct smalti_device *device, const struct smalti_launch *launch,
			 const struct smalti_device_memory *const *buffers, int count, const void *arguments,
			 size_t argument_bytes, struct smalti_error *error)
{
	if (launch->groups == 0)
		return 0;
	return device->driver->launch(device, launch, buffers, count, arguments, argument_bytes, error);
}

bool smalti_device_can_repeat(const struct smalti_device *device)
{
	return device->driver->repeat;
}

int smalti_device_repeat(struct smalti_device *device, uint64_t key, const struct smalti_device_work *work,
			 struct smalti_error *error)
{
	return device->driver->repeat(device, key, work, error);
}

void smalti_device_follow(struct smalti_device *device, const int behind[SMALTI_DEVICE_LANES])
{
	if (device->records && device->driver->follow)
		device->driver->follow(device, behind);
}

int64_t smalti_device_repeats(const struct smalti_device *device)
{
	return device->repeats;
}

int smalti_device_finish(struct smalti_device *device, struct smalti_error *error)
{
	return device->driver->finish(device, error);
}

int smalti_device_product(struct smalti_device *device, const struct smalti_device_product *product,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error)
{
	if (product->rows == 0 || product->out == 0)
		return 0;
	return device->driver->product(device, product, x, w, y, error);
}

bool smalti_device_makes(const struct smalti_device *device, const struct smalti_device_product *product)
{
	const struct smalti_device_driver *driver = device->driver;
	const bool usual =
	    product->dtype != SMALTI_I8 && product->result == SMALTI_F32 && !product->bias && !product->gelu;
	return usual || (driver->makes && driver->makes(product));
}

enum smalti_dtype smalti_device_operands(const struct smalti_device *device, enum smalti_dtype compute)
{
	return device->driver->operands >> compute & 1 ? compute : SMALTI_F32;
}

bool smalti_device_has_convolution(struct smalti_device *device, const struct smalti_device_convolution *c)
{
	return device->driver->has_convolution && device->driver->has_convolution(device, c);
}

int smalti_device_convolve(struct smalti_device *device, const struct smalti_device_convolution *c,
			   const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			   const struct smalti_device_memory *y, struct smalti_error *error)
{
	return device->driver->convolve(device, c, x, w, y, error);
}

bool smalti_device_has_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa)
{
	return device->driver->has_sdpa && device->driver->has_sdpa(device, sdpa);
}

int smalti_device_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa,
		       const struct smalti_device_memory *q, const struct smalti_device_memory *kv,
		       const struct smalti_device_memory *bias, float scale,
		       const struct smalti_device_memory *y, struct smalti_error *error)
{
	return device->driver->sdpa(device, sdpa, q, kv, bias, scale, y, error);
}

bool smalti_device_attends_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a)
{
	return device->driver->attends_tile && device->driver->attends_tile(device, a);
}

int smalti_device_attend_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a,
			      struct smalti_error *error)
{
	return device->driver->attend_tile(device, a, error);
}
