/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/conv.h"
#include "kernels/elementwise.h"
#include "kernels/layout.h"
#include "kernels/norms.h"
#include "kernels/scratch.h"

#include <string.h>

int smalti_cpu_latent_rows(const struct latent_rows_data *data, const struct latent_rows_arguments *a,
			   struct smalti_error *error)
{
	(void)error;
	smalti_planes_to_pixels(a->channels, a->height, a->width, a->first_row, a->rows, a->scale,
				data->planes, data->y);
	return 0;
}

double smalti_conv_result_bytes(const struct conv_arguments *a)
{
	const int64_t scale = a->upsample ? 4 : 1;
	return smalti_bytes(SMALTI_F32, scale * a->rows * a->width / (a->stride == 2 ? 4 : 1), a->out);
}

double smalti_conv_bytes(const struct conv_arguments *a)
{
	return smalti_bytes(SMALTI_F32, a->rows * a->width, a->in) +
	       smalti_bytes(a->compute, 9 * a->in, a->out) + smalti_conv_result_bytes(a);
}

int smalti_cpu_read_rows(const struct read_rows_data *data, const struct read_rows_arguments *a,
			 struct smalti_error *error)
{
	return a->source(a->user, a->first, a->rows, a->width, data->y, error);
}

int smalti_cpu_posterior_rows(const struct posterior_rows_data *data,
			      const struct posterior_rows_arguments *a, struct smalti_error *error)
{
	(void)error;
	smalti_posterior_to_planes(a->channels, a->height, a->width, a->first_row, a->rows, data->moments,
				   data->planes);
	return 0;
}

/* What a band's neighbours and its GroupNorm need of it. */
static void publish(int64_t rows, int64_t width, int64_t channels, int64_t groups, const float *x, void *top,
		    void *bottom, void *moments)
{
	const size_t row_bytes = (size_t)(width * channels) * sizeof(float);
	if (top)
		memcpy(top, x, row_bytes);
	if (bottom)
		memcpy(bottom, x + (rows - 1) * width * channels, row_bytes);
	if (moments)
		smalti_groupnorm_moments(rows * width, channels, groups, x, moments);
}

int smalti_cpu_edges(const struct edges_data *data, const struct edges_arguments *a,
		     struct smalti_error *error)
{
	(void)error;
	publish(a->rows, a->width, a->channels, a->groups, data->x, data->top, data->bottom, data->moments);
	return 0;
}

/* The input of a convolution: a band with one row above and one below. */
struct input {
	const struct conv_arguments *a;
	const float *coefficients; /* a[in], b[in] of GroupNorm, or NULL */
	char *lines;               /* [scale·rows + 2 or 1, scale·width, in] of dtype compute */
	char *normalised;          /* one row of x, when it is to be doubled */
	int64_t scale, line_bytes;
};

/* f(row) of x into line `line`, and into the next one as well when it is doubled and inside. */
static void put_row(const struct input *in, const float *row, int64_t line, int64_t copies)
{
	const struct conv_arguments *a = in->a;
	char *target = in->lines + line * in->line_bytes;
	char *direct = in->scale == 2 ? in->normalised : target;
	if (in->coefficients)
		smalti_groupnorm_apply(a->width, a->in, row, in->coefficients, in->coefficients + a->in, true,
				       a->compute, direct);
	else
		smalti_convert(a->width * a->in, SMALTI_F32, row, a->compute, direct);
	if (in->scale == 2)
		smalti_upsample_row(a->width, a->in, a->compute, direct, target);
	if (copies == 2)
		memcpy(target + in->line_bytes, target, (size_t)in->line_bytes);
}

static void put_halo(const struct input *in, const float *row, int64_t line)
{
	if (row)
		put_row(in, row, line, 1);
	else /* the picture's border: zeros of the normalised map */
		memset(in->lines + line * in->line_bytes, 0, (size_t)in->line_bytes);
}

static int prepare(struct input *in, const struct conv_data *data, struct smalti_error *error)
{
	const struct conv_arguments *a = in->a;
	in->scale = a->upsample ? 2 : 1;
	in->line_bytes = in->scale * a->width * a->in * smalti_dtype_bytes(a->compute);
	in->lines =
	    smalti_scratch(SMALTI_SCRATCH_ASSEMBLE, (in->scale * a->rows + 2) * in->line_bytes, error);
	const int64_t coefficient_bytes = 2 * a->in * (int64_t)sizeof(float);
	char *extra = smalti_scratch(SMALTI_SCRATCH_ROWS, coefficient_bytes + in->line_bytes, error);
	if (!in->lines || !extra)
		return -1;
	in->normalised = extra + coefficient_bytes;
	in->coefficients = NULL;
	if (data->moments) {
		float *coefficients = (float *)(void *)extra;
		smalti_groupnorm_coefficients(a->in, a->groups, data->moments, (double)a->epsilon,
					      data->gamma, data->beta, coefficients, coefficients + a->in);
		in->coefficients = coefficients;
	}
	return 0;
}

static int convolve(const struct conv_data *data, const struct conv_arguments *a, bool residual,
		    struct smalti_error *error)
{
	struct input in = {.a = a};
	if (prepare(&in, data, error) < 0)
		return -1;
	const int64_t before = a->stride == 1; /* stride 2 looks down and to the right only */
	if (before)
		put_halo(&in, data->above, 0);
	for (int64_t row = 0; row < a->rows; row++)
		put_row(&in, (const float *)data->x + row * a->width * a->in, before + row * in.scale,
			in.scale);
	put_halo(&in, data->below, before + a->rows * in.scale);
	const struct smalti_conv conv = {.rows = a->rows * in.scale / a->stride,
					 .width = a->width * in.scale,
					 .in = a->in,
					 .out = a->out,
					 .stride = a->stride,
					 .compute = a->compute,
					 .residual = residual};
	if (smalti_conv(&conv, in.lines, data->weight, data->bias, data->y, error) < 0)
		return -1;
	publish(conv.rows, conv.width / a->stride, a->out, a->y_groups, data->y, data->top, data->bottom,
		data->y_moments);
	return 0;
}

int smalti_cpu_conv(const struct conv_data *data, const struct conv_arguments *a, struct smalti_error *error)
{
	return convolve(data, a, false, error);
}

/* conv_add_data has the same members in the same order: only the access to y differs. */
_Static_assert(sizeof(struct conv_add_data) == sizeof(struct conv_data), "conv_add and conv differ");

int smalti_cpu_conv_add(const struct conv_add_data *data, const struct conv_arguments *a,
			struct smalti_error *error)
{
	struct conv_data same;
	memcpy(&same, data, sizeof(same));
	return convolve(&same, a, true, error);
}

int smalti_cpu_emit_rows(const struct emit_rows_data *data, const struct emit_rows_arguments *a,
			 struct smalti_error *error)
{
	return a->sink(a->user, a->first, a->rows, a->width, data->x, error);
}
