/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, by CLBlast. */
#include "rt/opencl.h"

#include <clblast_c.h>

int smalti_opencl_product(struct smalti_device *device, const struct smalti_device_product *p,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error)
{
	struct smalti_opencl *opencl = (struct smalti_opencl *)device;
	smalti_opencl_begin(opencl);
	const CLBlastStatusCode status = CLBlastSgemm(
	    CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeYes, (size_t)p->rows, (size_t)p->out,
	    (size_t)p->in, 1.f, x->memory, (size_t)p->x_first, (size_t)p->x_stride, w->memory,
	    (size_t)p->w_first, (size_t)p->w_stride, p->adds ? 1.f : 0.f, y->memory, (size_t)p->y_first,
	    (size_t)p->y_stride, &opencl->queue, NULL);
	smalti_opencl_end(opencl);
	if (status == CLBlastSuccess)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "product of %lld x %lld x %lld: CLBlast fails with %d",
			   (long long)p->rows, (long long)p->in, (long long)p->out, (int)status);
}
