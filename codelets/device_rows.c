/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

/* Operations on rows whose length may be a multiple of eight. */

/* Returns a launch with a group for each row: of the kernel that keeps rows in registers, with whole warps of
 * threads, if rows are `eights` and not too long; else of the general one. */
static struct smalti_launch launch_of_rows(const char *general, const char *kept, int64_t rows, int64_t dim,
					   bool eights)
{
	enum { WARP = 32, MOST = SMALTI_EIGHT * SMALTI_ROW_EIGHTS * SMALTI_DEVICE_THREADS };
	const int64_t wanted = smalti_round_up(dim / SMALTI_EIGHT, WARP);
	if (!eights || dim > MOST)
		return (struct smalti_launch){general, rows, SMALTI_DEVICE_THREADS};
	return (struct smalti_launch){kept, rows, (int)smalti_min(wanted, SMALTI_DEVICE_THREADS)};
}

int smalti_device_ln_modulate(struct smalti_device *device, const struct ln_modulate_memories *data,
			      const struct ln_modulate_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_memory *const buffers[] = {data->x, data->modulation, data->y};
	const struct smalti_launch launch =
	    launch_of_rows("ln_modulate", SMALTI_DEVICE_FORM("ln_modulate", a->dtype), a->rows, a->dim,
			   a->dim % SMALTI_EIGHT == 0);
	return smalti_device_launch(device, &launch, buffers, SMALTI_DEVICE_COUNT(buffers), a, sizeof(*a),
				    error);
}

int smalti_device_rmsnorm(struct smalti_device *device, const struct rmsnorm_memories *data,
			  const struct rmsnorm_arguments *a, struct smalti_error *error)
{
	bool eights = true;
	for (int i = 0; i < SMALTI_MANY; i++)
		eights = eights && a->columns[i] % SMALTI_EIGHT == 0;
	const struct smalti_launch launch =
	    launch_of_rows("rmsnorm", SMALTI_DEVICE_FORM("rmsnorm", a->dtype), a->rows, a->dim, eights);
	return smalti_device_launch(device, &launch, (const struct smalti_device_memory *const *)data,
				    (int)(sizeof(*data) / sizeof(data->weight)), a, sizeof(*a), error);
}

int smalti_device_add_row(struct smalti_device *device, const struct add_row_memories *data,
			  const struct add_row_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_memory *const buffers[] = {data->row, data->y};
	return smalti_device_values(device, "add_row", "add_row_eights", a->rows, a->dim, buffers, a, error);
}

int smalti_device_gated_sum(struct smalti_device *device, const struct gated_sum_memories *data,
			    const struct gated_sum_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_memory *const buffers[] = {data->x, data->z, data->modulation, data->y};
	return smalti_device_values(device, "gated_sum", "gated_sum_eights", a->rows, a->dim, buffers, a,
				    error);
}

int smalti_device_convert(struct smalti_device *device, const struct convert_memories *data,
			  const struct convert_arguments *a, struct smalti_error *error)
{
	const struct operand_arguments made = {1, a->count, 0, a->count, a->from, a->to, a->to};
	const struct smalti_device_memory *const buffers[] = {data->x, data->y};
	return smalti_device_values(device, "operand", SMALTI_DEVICE_FORM("operand", a->to), 1, a->count,
				    buffers, &made, error);
}
