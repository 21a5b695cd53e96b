/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "base/dtype.h"
#include "kernels/moments.h"

/* Returns how many rows of `bytes` bytes are made together in `room` bytes of scratch. */
static int64_t rows_together(int64_t room, int64_t bytes)
{
	return room > bytes ? room / bytes : 1;
}

/* Computes GroupNorm's coefficients a and b of each channel, f32 [2, channels] in scratch; NULL with an
 * error. */
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
	if (!coefficients)
		return -1;
	return smalti_device_values(device, "groupnorm_apply",
				    SMALTI_DEVICE_FORM("groupnorm_apply", a->dtype), a->pixels, a->channels,
				    buffers, a, error);
}

/* Returns the kernel for groups of 4·2^shift channels and sets the shift, or returns the general one. */
static const char *moments_kernel(struct moments_arguments *a)
{
	const int64_t fours = a->channels / a->groups / 4;
	while (1 << a->shift < fours && 1 << a->shift < SMALTI_DEVICE_THREADS)
		a->shift++;
	return a->channels == (4 * a->groups) << a->shift ? "band_moments_fours" : "band_moments";
}

/* Sums the few groups' pixels in parts, to use all of the device. */
static int sum_moments(struct smalti_device *device, const struct edges_arguments *a,
		       const struct smalti_device_memory *x, const struct smalti_device_memory *moments,
		       struct smalti_error *error)
{
	enum { PART = 1 << 14, MAX_PARTS = 64 }; /* about how many elements of a group in a part */
	const int64_t pixels = a->rows * a->width, parts = pixels * (a->channels / a->groups) / PART;
	struct moments_arguments counted = {.pixels = pixels,
					    .channels = a->channels,
					    .groups = a->groups,
					    .parts = smalti_min(smalti_max(parts, 1), MAX_PARTS)};
	const char *kernel = moments_kernel(&counted);
	const struct smalti_device_memory *const whole[] = {x, moments};
	counted.step = (pixels + counted.parts - 1) / counted.parts;
	if (counted.parts == 1)
		return smalti_device_groups(device, kernel, a->groups, whole, &counted, error);
	const struct smalti_device_memory *summed = smalti_device_take(
	    device, counted.parts * a->groups * (int64_t)sizeof(struct smalti_moments), error);
	const struct smalti_device_memory *const split[] = {x, summed}, *const joined[] = {summed, moments};
	if (!summed)
		return -1;
	int status = smalti_device_groups(device, kernel, counted.parts * a->groups, split, &counted, error);
	if (status == 0)
		status = smalti_device_elements(device, "join_moments", a->groups, joined, &counted, error);
	smalti_device_give(device, summed);
	return status;
}

/* Writes a band's edge rows and moments, for its neighbours and GroupNorm, if wanted. */
static int leave_edges(struct smalti_device *device, const struct edges_arguments *a,
		       const struct smalti_device_memory *x, const struct smalti_device_memory *top,
		       const struct smalti_device_memory *bottom, const struct smalti_device_memory *moments,
		       struct smalti_error *error)
{
	const struct copy_edges_arguments edges = {a->rows, a->width * a->channels};
	const struct smalti_device_memory *const copied[] = {x, top, bottom};
	if ((top || bottom) &&
	    smalti_device_elements(device, "copy_edges", edges.row, copied, &edges, error) < 0)
		return -1;
	return moments ? sum_moments(device, a, x, moments, error) : 0;
}

int smalti_device_edges(struct smalti_device *device, const struct edges_memories *data,
			const struct edges_arguments *a, struct smalti_error *error)
{
	return leave_edges(device, a, data->x, data->top, data->bottom, data->moments, error);
}

/* A convolution: its operands, and the extents of its result. */
struct band {
	const struct smalti_device_memory *coefficients; /* NULL: x is used as it is */
	struct smalti_device_matrix weight;
	int64_t rows, width;
};

/* Describes the convolution to a device, which may have its own. */
static struct smalti_device_convolution describe(const struct conv_arguments *a, const struct band *band,
						 int64_t rows)
{
	return (struct smalti_device_convolution){.rows = rows * a->stride,
						  .width = band->width * a->stride,
						  .in = a->in,
						  .out = a->out,
						  .stride = a->stride,
						  .dtype = band->weight.dtype};
}

/* Tells whether the device has the convolutions of `step` rows and of the rest. Their results have the
 * weight's dtype: f16 is too narrow for the sums of some models' VAE. */
static bool has_convolution(struct smalti_device *device, const struct conv_arguments *a,
			    const struct band *band, int64_t step)
{
	const struct smalti_device_convolution max = describe(a, band, step),
					       last = describe(a, band, band->rows % step);
	return band->weight.first == 0 && band->weight.dtype != SMALTI_F16 &&
	       (band->rows < step || smalti_device_has_convolution(device, &max)) &&
	       (last.rows == 0 || smalti_device_has_convolution(device, &last));
}

/* Makes the input of rows first_row … first_row + rows − 1 of y, in the weight's dtype, with a row above and
 * below, but none above with stride 2. In scratch; NULL with an error. */
static const struct smalti_device_memory *take_rows(struct smalti_device *device,
						    const struct conv_memories *data,
						    const struct conv_arguments *a, const struct band *band,
						    enum smalti_device_slot slot, int64_t first_row,
						    int64_t rows, struct smalti_error *error)
{
	const enum smalti_dtype dtype = band->weight.dtype;
	const int64_t before = a->stride == 2 ? 0 : 1;
	const struct conv_patches_arguments taken = {*a, first_row * a->stride - before,
						     rows * a->stride + 1 + before, dtype};
	const int64_t pixels = taken.rows * band->width * a->stride;
	const struct smalti_device_memory *memory =
	    smalti_device_scratch(device, slot, pixels * a->in * smalti_dtype_bytes(dtype), error);
	const struct smalti_device_memory *const buffers[] = {data->x, data->above, data->below,
							      band->coefficients, memory};
	const char *eights = a->compute == dtype ? SMALTI_DEVICE_FORM("conv_rows", dtype) : NULL;
	if (!memory ||
	    smalti_device_values(device, "conv_rows", eights, pixels, a->in, buffers, &taken, error) < 0)
		return NULL;
	return memory;
}

/* Computes rows first_row … first_row + rows − 1 of y, with the bias, by the device's convolution. */
static int convolve_rows(struct smalti_device *device, const struct conv_memories *data,
			 const struct conv_arguments *a, const struct band *band, int64_t first_row,
			 int64_t rows, struct smalti_error *error)
{
	const struct smalti_device_convolution c = describe(a, band, rows);
	const struct add_map_arguments adding = {rows * band->width * a->out, a->out,
						 first_row * band->width * a->out, c.dtype, a->residual};
	const struct smalti_device_memory *x = take_rows(device, data, a, band, SMALTI_DEVICE_X, first_row,
							 rows, error),
					  *map = smalti_device_scratch(
					      device, SMALTI_DEVICE_ROWS,
					      adding.count * smalti_dtype_bytes(c.dtype), error);
	const struct smalti_device_memory *const buffers[] = {map, data->bias, data->y};
	if (!x || !map || smalti_device_convolve(device, &c, x, band->weight.memory, map, error) < 0)
		return -1;
	return smalti_device_values(device, "add_map", c.dtype == SMALTI_BF16 ? "add_map_bf16" : NULL,
				    rows * band->width, a->out, buffers, &adding, error);
}

/* Makes patches [rows, width, 3, 3, in]. If pixels are whole chunks, it copies them from rows that are
 * computed once. */
static int make_patches(struct smalti_device *device, const struct conv_memories *data,
			const struct conv_arguments *a, const struct band *band, int64_t first_row,
			int64_t rows, const struct smalti_device_memory *patches, struct smalti_error *error)
{
	enum { CHUNK = 16 };
	const int64_t pixel = a->in * smalti_dtype_bytes(band->weight.dtype), pixels = rows * band->width;
	const struct conv_patches_arguments made = {*a, first_row, rows, band->weight.dtype};
	const struct smalti_device_memory *const buffers[] = {data->x, data->above, data->below,
							      band->coefficients, patches};
	if (pixel % CHUNK)
		return smalti_device_elements(device, "conv_patches", pixels * 9 * a->in, buffers, &made,
					      error);
	const struct copy_patches_arguments copied = {rows, band->width, band->width * a->stride, a->stride,
						      pixel / CHUNK};
	const struct smalti_device_memory *taken =
	    take_rows(device, data, a, band, SMALTI_DEVICE_ROWS, first_row, rows, error);
	const struct smalti_device_memory *const from_to[] = {taken, patches};
	return taken ? smalti_device_elements(device, "copy_patches", pixels * 9 * copied.chunks, from_to,
					      &copied, error)
		     : -1;
}

/* Computes the rows of y without the bias, by a product. */
static int multiply(struct smalti_device *device, const struct conv_memories *data,
		    const struct conv_arguments *a, const struct band *band, int64_t first_row, int64_t rows,
		    struct smalti_error *error)
{
	const enum smalti_dtype dtype = band->weight.dtype;
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
	if (!memory || make_patches(device, data, a, band, first_row, rows, memory, error) < 0)
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
	static const int64_t max_patches = 256 << 20, max_elements = INT32_MAX; /* a library's 32 bits */
	struct band band;
	if (prepare(device, data, a, &band, error) < 0)
		return -1;
	const int64_t value = smalti_dtype_bytes(band.weight.dtype), element = band.width * value,
		      room = smalti_min(smalti_device_room(device), max_elements * value),
		      taken = rows_together(room, element * (a->stride * a->stride * a->in + a->out));
	const bool whole = has_convolution(device, a, &band, taken);
	const int64_t step =
	    whole ? taken : rows_together(smalti_min(room, max_patches), element * 9 * a->in);
	for (int64_t row = 0; row < band.rows; row += step) {
		const int64_t left = band.rows - row;
		if ((whole ? convolve_rows : multiply)(device, data, a, &band, row, left < step ? left : step,
						       error) < 0)
			return -1;
	}
	const struct add_row_arguments adding = {band.rows * band.width, a->out};
	const struct edges_arguments edges = {band.rows, band.width, a->out, a->y_groups};
	const struct add_row_memories added = {data->bias, data->y};
	if (!whole && smalti_device_add_row(device, &added, &adding, error) < 0)
		return -1;
	return leave_edges(device, &edges, data->y, data->top, data->bottom, data->y_moments, error);
}
