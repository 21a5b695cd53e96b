/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "base/dtype.h"

/* Rows whose patches, of `bytes` each, are made together. */
static int64_t rows_together(const struct smalti_device *device, int64_t bytes)
{
	static const int64_t most_bytes = 64 << 20;
	const int64_t room = smalti_device_room(device),
		      rows = (room < most_bytes ? room : most_bytes) / bytes;
	return rows > 1 ? rows : 1;
}

/* GroupNorm's a and b of each channel, f32 [2, channels] in scratch; NULL with an error. */
static const struct smalti_device_memory *
make_coefficients(struct smalti_device *device, const struct coefficients_arguments *a,
		  const struct smalti_device_memory *moments, const struct smalti_device_memory *gamma,
		  const struct smalti_device_memory *beta, struct smalti_error *error)
{
	const struct smalti_device_memory *made = smalti_device_scratch(
	    device, SMALTI_DEVICE_COEFFICIENTS, 2 * a->channels * (int64_t)sizeof(float), error);
	const struct smalti_device_memory *const buffers[] = {moments, gamma, beta, made};
	if (!made ||
	    smalti_device_elements(device, "groupnorm_coefficients", a->channels, buffers, a, error) < 0)
		return NULL;
	return made;
}

int smalti_device_groupnorm(struct smalti_device *device, const struct groupnorm_memories *data,
			    const struct groupnorm_arguments *a, struct smalti_error *error)
{
	const struct coefficients_arguments of = {a->channels, a->groups, a->epsilon};
	const struct smalti_device_memory *coefficients =
	    make_coefficients(device, &of, data->moments, data->gamma, data->beta, error);
	const struct smalti_device_memory *const buffers[] = {data->x, coefficients, data->y};
	return coefficients ? smalti_device_elements(device, "groupnorm_apply", a->pixels * a->channels,
						     buffers, a, error)
			    : -1;
}

/* What a band's neighbours and its GroupNorm need of it; those that are wanted. */
static int leave_edges(struct smalti_device *device, const struct edges_arguments *a,
		       const struct smalti_device_memory *x, const struct smalti_device_memory *top,
		       const struct smalti_device_memory *bottom, const struct smalti_device_memory *moments,
		       struct smalti_error *error)
{
	const struct copy_edges_arguments edges = {a->rows, a->width * a->channels};
	const struct moments_arguments counted = {a->rows * a->width, a->channels, a->groups};
	const struct smalti_device_memory *const copied[] = {x, top, bottom}, *const summed[] = {x, moments};
	if ((top || bottom) &&
	    smalti_device_elements(device, "copy_edges", edges.row, copied, &edges, error) < 0)
		return -1;
	return moments ? smalti_device_groups(device, "band_moments", a->groups, summed, &counted, error) : 0;
}

int smalti_device_edges(struct smalti_device *device, const struct edges_memories *data,
			const struct edges_arguments *a, struct smalti_error *error)
{
	return leave_edges(device, a, data->x, data->top, data->bottom, data->moments, error);
}

/* Of a convolution: its operands, and the extents of what it makes. */
struct band {
	const struct smalti_device_memory *coefficients; /* NULL: x is taken as it is */
	struct smalti_device_matrix weight;
	int64_t rows, width;
};

/* What a device is asked for that may have convolutions of its own. */
static struct smalti_device_convolution describe(const struct conv_arguments *a, const struct band *band,
						 int64_t rows)
{
	return (struct smalti_device_convolution){.rows = rows * a->stride,
						  .width = band->width * a->stride,
						  .in = a->in,
						  .out = a->out,
						  .stride = a->stride,
						  .dtype = band->weight.dtype,
						  .adds = a->residual};
}

/* Whether it has those of `step` rows and of what is left. */
static bool has_convolution(struct smalti_device *device, const struct conv_arguments *a,
			    const struct band *band, int64_t step)
{
	const struct smalti_device_convolution most = describe(a, band, step),
					       last = describe(a, band, band->rows % step);
	return band->weight.first == 0 &&
	       (band->rows < step || smalti_device_has_convolution(device, &most)) &&
	       (last.rows == 0 || smalti_device_has_convolution(device, &last));
}

/* Rows first_row … first_row + rows − 1 of y, with the bias, by the device's convolution. */
static int convolve_rows(struct smalti_device *device, const struct conv_memories *data,
			 const struct conv_arguments *a, const struct band *band, int64_t first_row,
			 int64_t rows, struct smalti_error *error)
{
	const struct smalti_device_convolution c = describe(a, band, rows);
	const int64_t before = a->stride == 2 ? 0 : 1;
	const struct conv_patches_arguments taken = {*a, first_row * a->stride - before, c.rows + 1 + before,
						     c.dtype};
	const int64_t count = taken.rows * c.width * a->in;
	const struct smalti_device_memory *memory =
	    smalti_device_scratch(device, SMALTI_DEVICE_X, count * smalti_dtype_bytes(c.dtype), error);
	const struct smalti_device_memory *const buffers[] = {data->x, data->above, data->below,
							      band->coefficients, memory};
	if (!memory || smalti_device_elements(device, "conv_rows", count, buffers, &taken, error) < 0)
		return -1;
	return smalti_device_convolve(device, &c, memory, band->weight.memory, data->bias, data->y,
				      first_row * band->width * a->out, error);
}

/* The same without the bias, by a product. */
static int multiply(struct smalti_device *device, const struct conv_memories *data,
		    const struct conv_arguments *a, const struct band *band, int64_t first_row, int64_t rows,
		    struct smalti_error *error)
{
	const enum smalti_dtype dtype = band->weight.dtype;
	const struct conv_patches_arguments patches = {*a, first_row, rows, dtype};
	const int64_t pixels = rows * band->width, in = 9 * a->in;
	const struct smalti_device_product product = {.rows = pixels,
						      .in = in,
						      .out = a->out,
						      .x_stride = in,
						      .w_first = band->weight.first,
						      .w_stride = in,
						      .y_first = first_row * band->width * a->out,
						      .y_stride = a->out,
						      .adds = a->residual,
						      .dtype = dtype};
	const struct smalti_device_memory *memory =
	    smalti_device_scratch(device, SMALTI_DEVICE_X, pixels * in * smalti_dtype_bytes(dtype), error);
	const struct smalti_device_memory *const buffers[] = {data->x, data->above, data->below,
							      band->coefficients, memory};
	if (!memory ||
	    smalti_device_elements(device, "conv_patches", pixels * in, buffers, &patches, error) < 0)
		return -1;
	return smalti_device_product(device, &product, memory, band->weight.memory, data->y, error);
}

static int prepare(struct smalti_device *device, const struct conv_memories *data,
		   const struct conv_arguments *a, struct band *band, struct smalti_error *error)
{
	const int64_t scale = a->upsample ? 2 : 1;
	const struct coefficients_arguments of = {a->in, a->groups, a->epsilon};
	const struct operand_arguments weight = {a->out,     9 * a->in,  0,         9 * a->in,
						 a->compute, a->compute, a->compute};
	*band = (struct band){.rows = scale * a->rows / a->stride, .width = scale * a->width / a->stride};
	if (data->moments) {
		band->coefficients =
		    make_coefficients(device, &of, data->moments, data->gamma, data->beta, error);
		if (!band->coefficients)
			return -1;
	}
	return smalti_device_operand(device, SMALTI_DEVICE_WEIGHT, data->weight, &weight, &band->weight,
				     error);
}

int smalti_device_conv(struct smalti_device *device, const struct conv_memories *data,
		       const struct conv_arguments *a, struct smalti_error *error)
{
	struct band band;
	if (prepare(device, data, a, &band, error) < 0)
		return -1;
	const int64_t step = rows_together(device, band.width * 9 * a->in * (int64_t)sizeof(float));
	const bool whole = has_convolution(device, a, &band, step);
	for (int64_t row = 0; row < band.rows; row += step) {
		const int64_t left = band.rows - row;
		if ((whole ? convolve_rows : multiply)(device, data, a, &band, row, left < step ? left : step,
						       error) < 0)
			return -1;
	}
	const struct add_row_arguments adding = {band.rows * band.width, a->out};
	const struct edges_arguments edges = {band.rows, band.width, a->out, a->y_groups};
	const struct smalti_device_memory *const buffers[] = {data->bias, data->y};
	if (!whole &&
	    smalti_device_elements(device, "add_row", adding.rows * adding.dim, buffers, &adding, error) < 0)
		return -1;
	return leave_edges(device, &edges, data->y, data->top, data->bottom, data->y_moments, error);
}
