/* SPDX-License-Identifier: Apache-2.0 */
#include "template_driver.h"

/* The device of one worker: a queue, compiled kernels, handles of libraries. */
struct template
{
	struct smalti_device device; /* first */
	int allocations;
};

static struct template *template_of(const struct smalti_device *device)
{
	return (struct template *)(uintptr_t)device;
}

static struct smalti_device *open_device(int worker, struct smalti_error *error)
{
	(void)worker;
	struct template *template = smalti_calloc(1, sizeof(*template), error);
	if (!template)
		return NULL;
	template->device.speed = 1e9;
	return &template->device;
}

static void close_device(struct smalti_device *device)
{
	free(device);
}

static int launch(struct smalti_device *device, const struct smalti_launch *launch,
		  const struct smalti_device_memory *const *buffers, int count, const void *arguments,
		  size_t argument_bytes, struct smalti_error *error)
{
	(void)device, (void)buffers, (void)count, (void)arguments, (void)argument_bytes;
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "the template has no kernel %s", launch->kernel);
}

static int finish(struct smalti_device *device, struct smalti_error *error)
{
	(void)device, (void)error; /* commands end at once */
	return 0;
}

static double element(const float *matrix, int64_t row, int64_t column, int64_t stride, bool turned)
{
	return (double)(turned ? matrix[column * stride + row] : matrix[row * stride + column]);
}

static int product(struct smalti_device *device, const struct smalti_device_product *p,
		   const struct smalti_device_memory *x, const struct smalti_device_memory *w,
		   const struct smalti_device_memory *y, struct smalti_error *error)
{
	(void)device, (void)error;
	for (int64_t i = 0; i < (p->count ? p->count : 1); i++) {
		const float *xs = (const float *)x->memory + p->x_first + i * p->x_step;
		const float *ws = (const float *)w->memory + p->w_first + i * p->w_step;
		float *ys = (float *)y->memory + p->y_first + i * p->y_step;
		for (int64_t row = 0; row < p->rows; row++)
			for (int64_t column = 0; column < p->out; column++) {
				float *sum = &ys[row * p->y_stride + column];
				double all = p->adds ? (double)*sum : 0;
				for (int64_t k = 0; k < p->in; k++)
					all += element(xs, row, k, p->x_stride, p->turned_x) *
					       element(ws, column, k, p->w_stride, p->turned_w);
				*sum = (float)all;
			}
	}
	return 0;
}

static void *allocate(struct smalti_device *device, int64_t bytes, struct smalti_error *error)
{
	void *memory = smalti_calloc(1, bytes, error);
	template_of(device)->allocations += memory ? 1 : 0;
	return memory;
}

static void release(struct smalti_device *device, void *memory)
{
	template_of(device)->allocations--;
	free(memory);
}

const struct smalti_device_driver template_driver = {
    .worker = STARPU_CPU_WORKER,
    .operands = 1u << SMALTI_F32,
    .open = open_device,
    .close = close_device,
    .launch = launch,
    .finish = finish,
    .product = product,
    .allocate = allocate,
    .release = release,
};

int template_driver_allocations(const struct smalti_device *device)
{
	return template_of(device)->allocations;
}
