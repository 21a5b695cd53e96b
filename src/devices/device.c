/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/device.h"
#include "devices/driver.h"

#include <math.h>

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
