/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, by CLBlast. */
#include "devices/opencl.h"

#include <clblast_c.h>

static CLBlastTranspose turned(bool is)
{
	return is ? CLBlastTransposeYes : CLBlastTransposeNo;
}

/* A list of products, with the matrices of the current one. */
struct products {
	const struct smalti_device_product *p;
	cl_mem x, w, y;
	CLBlastTranspose of_x, of_w;
	size_t rows, out, in, x_stride, w_stride, y_stride;
	size_t x_first, w_first, y_first;
	float kept;
};

static struct products products_of(const struct smalti_device_product *p,
				   const struct smalti_device_memory *x, const struct smalti_device_memory *w,
				   const struct smalti_device_memory *y)
{
	return (struct products){.p = p,
				 .x = x->memory,
				 .w = w->memory,
				 .y = y->memory,
				 .of_x = turned(p->turned_x),
				 .of_w = turned(!p->turned_w),
				 .rows = (size_t)p->rows,
				 .out = (size_t)p->out,
				 .in = (size_t)p->in,
				 .x_stride = (size_t)p->x_stride,
				 .w_stride = (size_t)p->w_stride,
				 .y_stride = (size_t)p->y_stride,
				 .kept = p->adds ? 1.f : 0.f};
}

static void go_to(struct products *s, int64_t i)
{
	s->x_first = (size_t)(s->p->x_first + i * s->p->x_step);
	s->w_first = (size_t)(s->p->w_first + i * s->p->w_step);
	s->y_first = (size_t)(s->p->y_first + i * s->p->y_step);
}

/* Counts the bytes that CLBlast needs for copies of a large product's matrices, in the layout of its kernel.
 * The last product of a list needs the most: one that begins at 0 may need fewer. */
static CLBlastStatusCode count_copies(struct smalti_opencl *opencl, struct products *s, int64_t count,
				      size_t *bytes)
{
	go_to(s, count - 1);
	smalti_opencl_begin(opencl); /* it reads tables that the first product fills */
	const CLBlastStatusCode status = CLBlastSGemmTempBufferSize(
	    CLBlastLayoutRowMajor, s->of_x, s->of_w, s->rows, s->out, s->in, s->x_first, s->x_stride,
	    s->w_first, s->w_stride, s->y_first, s->y_stride, &opencl->queue, bytes);
	smalti_opencl_end(opencl);
	return status;
}

/* Only for products without copies: CLBlast would allocate them itself. */
static CLBlastStatusCode multiply_together(struct smalti_opencl *opencl, struct products *s, int64_t count)
{
	const struct smalti_device_product *p = s->p;
	go_to(s, 0);
	return CLBlastSgemmStridedBatched(
	    CLBlastLayoutRowMajor, s->of_x, s->of_w, s->rows, s->out, s->in, 1.f, s->x, s->x_first,
	    s->x_stride, (size_t)p->x_step, s->w, s->w_first, s->w_stride, (size_t)p->w_step, s->kept, s->y,
	    s->y_first, s->y_stride, (size_t)p->y_step, (size_t)count, &opencl->queue, NULL);
}

static CLBlastStatusCode multiply(struct smalti_opencl *opencl, struct products *s, int64_t i, cl_mem copies)
{
	go_to(s, i);
	return CLBlastSgemmWithTempBuffer(CLBlastLayoutRowMajor, s->of_x, s->of_w, s->rows, s->out, s->in,
					  1.f, s->x, s->x_first, s->x_stride, s->w, s->w_first, s->w_stride,
					  s->kept, s->y, s->y_first, s->y_stride, &opencl->queue, NULL,
					  copies);
}

int smalti_opencl_product(struct smalti_device *device, const struct smalti_device_product *p,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error)
{
	struct smalti_opencl *opencl = (struct smalti_opencl *)device;
	struct products s = products_of(p, x, w, y);
	const int64_t count = smalti_max(1, p->count);
	const struct smalti_device_memory *copies = NULL;
	size_t bytes = 0;
	CLBlastStatusCode status = count_copies(opencl, &s, count, &bytes);
	if (bytes && !(copies = smalti_device_scratch(device, SMALTI_DEVICE_DRIVER, (int64_t)bytes, error)))
		return -1;
	smalti_opencl_begin(opencl);
	if (!status && count > 1 && !copies)
		status = multiply_together(opencl, &s, count);
	else
		for (int64_t i = 0; i < count && !status; i++)
			status = multiply(opencl, &s, i, copies ? copies->memory : NULL);
	smalti_opencl_end(opencl);
	if (status == CLBlastSuccess)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "product of %lld x %lld x %lld: CLBlast fails with %d",
			   (long long)p->rows, (long long)p->in, (long long)p->out, (int)status);
}
