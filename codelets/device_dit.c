/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

int smalti_device_patch_embed(struct smalti_device *device, const struct patch_embed_memories *data,
			      const struct patch_embed_arguments *a, struct smalti_error *error)
{
	const int64_t count = a->rows * a->in;
	const struct smalti_device_product product = {.rows = a->rows,
						      .in = a->in,
						      .out = a->out,
						      .x_stride = a->in,
						      .w_stride = a->in,
						      .y_stride = a->out};
	const struct smalti_device_memory *scaled =
	    smalti_device_scratch(device, SMALTI_DEVICE_X, count * (int64_t)sizeof(float), error);
	const struct smalti_device_memory *const scaling[] = {data->x, scaled};
	const struct smalti_device_memory *const adding[] = {data->bias, data->positions, data->y};
	if (!scaled || smalti_device_elements(device, "scale_patches", count, scaling, a, error) < 0 ||
	    smalti_device_product(device, &product, scaled, data->weight, data->y, error) < 0)
		return -1;
	return smalti_device_elements(device, "finish_patches", a->rows * a->out, adding, a, error);
}
