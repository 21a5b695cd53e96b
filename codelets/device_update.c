/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "kernels/optimizers.h"

int smalti_device_adamw(struct smalti_device *device, const struct adamw_memories *data,
			const struct adamw_arguments *a, struct smalti_error *error)
{
	const struct adamw_elements_arguments elements = {smalti_adamw_factors(&a->adamw), a->count};
	const struct smalti_device_memory *const buffers[] = {data->gradient, data->value, data->mean,
							      data->square};
	return smalti_device_elements(device, "adamw_elements", a->count, buffers, &elements, error);
}

int smalti_device_square_sum(struct smalti_device *device, const struct square_sum_memories *data,
			     const struct square_sum_arguments *a, struct smalti_error *error)
{
	enum { MOST = 1024 };
	const int64_t needed = (a->count + SMALTI_DEVICE_THREADS - 1) / SMALTI_DEVICE_THREADS;
	const struct sum_squares_arguments sums = {needed < MOST ? needed : MOST, a->factor};
	const struct smalti_device_memory *parts = smalti_device_scratch(
	    device, SMALTI_DEVICE_COEFFICIENTS, sums.count * (int64_t)sizeof(double), error);
	const struct smalti_device_memory *const squared[] = {data->x, parts}, *const summed[] = {parts,
												  data->sum};
	if (!parts || smalti_device_groups(device, "square_sums", sums.count, squared, a, error) < 0)
		return -1;
	return smalti_device_groups(device, "sum_squares", 1, summed, &sums, error);
}

/* CAME, by passes over all elements. */
struct came {
	struct smalti_device *device;
	const struct smalti_device_memory *buffers[13]; /* in the kernels' order */
	struct came_pass_arguments pass;
	int64_t rows, elements, groups; /* of all parts; groups: with a thread for each element */
	struct smalti_error *error;
};

static int launch(const struct came *c, const char *kernel, int64_t groups)
{
	return smalti_device_groups(c->device, kernel, groups, c->buffers, &c->pass, c->error);
}

/* Computes the factors from the squares of the pass's values. */
static int make_factors(struct came *c, enum smalti_came_pass pass)
{
	const struct smalti_came_shape *shape = &c->pass.of.shape;
	const int64_t columns = shape->batch * shape->columns;
	c->pass.pass = pass;
	if (launch(c, "came_rows", shape->batch * c->rows) < 0 ||
	    launch(c, "came_columns", (columns + SMALTI_DEVICE_THREADS - 1) / SMALTI_DEVICE_THREADS) < 0)
		return -1;
	return launch(c, "came_factors", shape->batch);
}

static int update_matrices(struct came *c)
{
	if (make_factors(c, SMALTI_CAME_GRADIENTS) < 0)
		return -1;
	c->pass.pass = SMALTI_CAME_STEPS;
	c->pass.sums = c->pass.of.shape.batch * c->rows;
	if (launch(c, "came_rows", c->pass.sums) < 0 || launch(c, "came_clip", 1) < 0 ||
	    launch(c, "came_means", c->groups) < 0 || make_factors(c, SMALTI_CAME_DEVIATIONS) < 0)
		return -1;
	return launch(c, "came_move", c->groups);
}

static int update_elements(struct came *c)
{
	c->pass.sums = c->groups;
	if (launch(c, "came_squares", c->groups) < 0 || launch(c, "came_clip", 1) < 0)
		return -1;
	return launch(c, "came_elements", c->groups);
}

int smalti_device_came(struct smalti_device *device, const struct came_memories *data,
		       const struct came_arguments *a, struct smalti_error *error)
{
	const struct smalti_came_shape *shape = &a->shape;
	struct came c = {
	    .device = device, .pass = {.of = *a}, .rows = shape->parts * shape->rows, .error = error};
	c.elements = shape->batch * c.rows * shape->columns;
	c.groups = (c.elements + SMALTI_DEVICE_THREADS - 1) / SMALTI_DEVICE_THREADS;
	const int64_t lines = shape->batch * (c.rows + shape->columns);
	const struct smalti_device_memory *const scratch[] = {
	    smalti_device_scratch(device, SMALTI_DEVICE_X, lines * (int64_t)sizeof(float), error),
	    smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT,
				  (shape->factored ? lines : c.groups) * (int64_t)sizeof(double), error),
	    smalti_device_scratch(device, SMALTI_DEVICE_COEFFICIENTS, sizeof(double), error)};
	if (!scratch[0] || !scratch[1] || !scratch[2])
		return -1;
	memcpy(c.buffers, data, sizeof(*data));
	memcpy(c.buffers + sizeof(*data) / sizeof(c.buffers[0]), scratch, sizeof(scratch));
	return shape->factored ? update_matrices(&c) : update_elements(&c);
}
