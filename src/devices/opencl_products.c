/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, by CLBlast. */
#include "devices/opencl.h"

#include <clblast_c.h>

static CLBlastTranspose turned(bool is)
{
	return is ? CLBlastTransposeYes : CLBlastTransposeNo;
}

int smalti_opencl_product(struct smalti_device *device, const struct smalti_device_product *p,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error)
{
	struct smalti_opencl *opencl = (struct smalti_opencl *)device;
	smalti_opencl_begin(opencl);
	const CLBlastTranspose of_x = turned(p->turned_x), of_w = turned(!p->turned_w);
	const size_t rows = (size_t)p->rows, out = (size_t)p->out, in = (size_t)p->in;
	const float kept = p->adds ? 1.f : 0.f;
	const CLBlastStatusCode status =
	    p->count > 1
		? CLBlastSgemmStridedBatched(
		      CLBlastLayoutRowMajor, of_x, of_w, rows, out, in, 1.f, x->memory, (size_t)p->x_first,
		      (size_t)p->x_stride, (size_t)p->x_step, w->memory, (size_t)p->w_first,
		      (size_t)p->w_stride, (size_t)p->w_step, kept, y->memory, (size_t)p->y_first,
		      (size_t)p->y_stride, (size_t)p->y_step, (size_t)p->count, &opencl->queue, NULL)
		: CLBlastSgemm(CLBlastLayoutRowMajor, of_x, of_w, rows, out, in, 1.f, x->memory,
			       (size_t)p->x_first, (size_t)p->x_stride, w->memory, (size_t)p->w_first,
			       (size_t)p->w_stride, kept, y->memory, (size_t)p->y_first, (size_t)p->y_stride,
			       &opencl->queue, NULL);
	smalti_opencl_end(opencl);
	if (status == CLBlastSuccess)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "product of %lld x %lld x %lld: CLBlast fails with %d",
			   (long long)p->rows, (long long)p->in, (long long)p->out, (int)status);
}
