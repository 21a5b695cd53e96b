/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv.h"
#include "codelets/codelets.h"
#include "kernels/groupnorm.h"
#include "kernels/kernels.h"
#include "kernels/layout.h"
#include "kernels/scratch.h"

double smalti_conv_result_bytes(const struct conv_arguments *a)
{
	const int64_t scale = a->upsample ? 4 : 1;
	return smalti_bytes(SMALTI_F32, scale * a->rows * a->width / (a->stride == 2 ? 4 : 1), a->out);
}

double smalti_conv_bytes(const struct conv_arguments *a)
{
	return smalti_bytes(SMALTI_F32, a->rows * a->width, a->in) +
	       smalti_bytes(a->compute, 9 * a->in, a->out) +
	       (a->residual ? 2 : 1) * smalti_conv_result_bytes(a);
}

/* Copies the first and the last row of x [rows, row], where they are wanted. */
static void copy_edges(int64_t rows, int64_t row, const float *x, float *top, float *bottom)
{
	if (top)
		memcpy(top, x, (size_t)row * sizeof(*x));
	if (bottom)
		memcpy(bottom, x + (rows - 1) * row, (size_t)row * sizeof(*x));
}

int smalti_cpu_edges(const struct edges_data *data, const struct edges_arguments *a,
		     struct smalti_error *error)
{
	(void)error;
	copy_edges(a->rows, a->width * a->channels, data->x, data->top, data->bottom);
	if (data->moments)
		smalti_kernels()->groupnorm_moments(a->rows * a->width, a->channels, a->groups, data->x,
						    data->moments);
	return 0;
}

/* The convolution of a band, a slab of rows at a time. The slab's input lines, with one above and one below,
 * are assembled shortly before the kernel, so that caches still hold them. */
struct context {
	const struct conv_data *data;
	const struct conv_arguments *a;
	struct smalti_conv conv;        /* a slab's; rows: the most of a slab */
	const float *coefficients;      /* a[in], b[in] of GroupNorm, or NULL */
	struct smalti_moments *moments; /* of a slab's output; NULL: not wanted */
	char *lines;                    /* [lines_of(conv.rows), conv.width, in] of dtype compute */
	char *normalised;               /* one row of x before it is doubled */
	int64_t scale, line_bytes;
};

/* Writes f(row) of x, or of a neighbour's row. */
static void put_row(const struct context *p, const float *row, char *line)
{
	const struct conv_arguments *a = p->a;
	char *direct = p->scale == 2 ? p->normalised : line;
	if (p->coefficients)
		smalti_kernels()->groupnorm_apply(a->width, a->in, row, p->coefficients,
						  p->coefficients + a->in, true, a->compute, direct);
	else
		smalti_kernels()->convert(a->width * a->in, SMALTI_F32, row, a->compute, direct);
	if (p->scale == 2)
		smalti_upsample_row(a->width, a->in, a->compute, direct, line);
}

/* Returns the input lines of some rows. Stride 2 needs none above. */
static int64_t lines_of(const struct context *p, int64_t rows)
{
	return p->conv.stride == 2 ? 2 * rows + 1 : rows + 2;
}

/* Writes row `row` of the scaled map, from -1 to scale·rows, into line `line` of the slab. */
static void put_line(const struct context *p, int64_t row, int64_t line)
{
	const struct conv_arguments *a = p->a;
	char *to = p->lines + line * p->line_bytes;
	if (p->scale == 2 && row % 2 == 1 && line > 0) {
		memcpy(to, to - p->line_bytes, (size_t)p->line_bytes);
		return;
	}
	const float *from = row < 0 ? p->data->above
			    : row == p->scale * a->rows
				? p->data->below
				: (const float *)p->data->x + row / p->scale * a->width * a->in;
	if (from)
		put_row(p, from, to);
	else /* the image's border: zeros of the normalised map */
		memset(to, 0, (size_t)p->line_bytes);
}

static int prepare(struct context *p, struct smalti_error *error)
{
	const struct conv_arguments *a = p->a;
	const int64_t coefficient_bytes = 2 * a->in * (int64_t)sizeof(float);
	const int64_t moments_bytes = a->y_groups * (int64_t)sizeof(struct smalti_moments);
	p->line_bytes = p->conv.width * a->in * smalti_dtype_bytes(a->compute);
	p->lines = smalti_scratch(SMALTI_SCRATCH_ASSEMBLE, lines_of(p, p->conv.rows) * p->line_bytes, error);
	char *extra =
	    smalti_scratch(SMALTI_SCRATCH_ROWS, moments_bytes + coefficient_bytes + p->line_bytes, error);
	if (!p->lines || !extra)
		return -1;
	float *coefficients = (float *)(void *)(extra + moments_bytes);
	if (p->data->y_moments)
		p->moments = (struct smalti_moments *)(void *)extra;
	p->normalised = extra + moments_bytes + coefficient_bytes;
	if (!p->data->moments)
		return 0;
	smalti_groupnorm_coefficients(a->in, a->groups, p->data->moments, (double)a->epsilon, p->data->gamma,
				      p->data->beta, coefficients, coefficients + a->in);
	p->coefficients = coefficients;
	return 0;
}

/* Computes rows [first, first + rows) of y. */
static int convolve_slab(const struct context *p, int64_t first, int64_t rows, struct smalti_error *error)
{
	struct smalti_conv conv = p->conv;
	const int64_t width = conv.width / conv.stride, shared = conv.stride == 2 ? 1 : 2;
	const int64_t top = conv.stride == 2 ? 2 * first : first - 1;
	const int64_t known = first ? shared : 0; /* the last lines of the slab before */
	float *y = (float *)p->data->y + first * width * conv.out;
	if (known)
		memcpy(p->lines, p->lines + (lines_of(p, conv.rows) - known) * p->line_bytes,
		       (size_t)(known * p->line_bytes));
	for (int64_t line = known; line < lines_of(p, rows); line++)
		put_line(p, top + line, line);
	conv.rows = rows;
	if (smalti_conv(&conv, p->lines, p->data->weight, p->data->bias, y, error) < 0)
		return -1;
	if (p->moments) {
		smalti_kernels()->groupnorm_moments(rows * width, conv.out, p->a->y_groups, y, p->moments);
		smalti_moments_merge(p->a->y_groups, p->moments, p->data->y_moments);
	}
	return 0;
}

int smalti_cpu_conv(const struct conv_data *data, const struct conv_arguments *a, struct smalti_error *error)
{
	struct context p = {.data = data, .a = a, .scale = a->upsample ? 2 : 1};
	const int64_t rows = p.scale * a->rows / a->stride;
	p.conv = (struct smalti_conv){.rows = rows,
				      .width = p.scale * a->width,
				      .in = a->in,
				      .out = a->out,
				      .stride = a->stride,
				      .compute = a->compute,
				      .residual = a->residual};
	p.conv.rows = smalti_conv_slab(&p.conv);
	if (prepare(&p, error) < 0)
		return -1;
	if (data->y_moments)
		memset(data->y_moments, 0, (size_t)a->y_groups * sizeof(struct smalti_moments));
	for (int64_t first = 0; first < rows; first += p.conv.rows)
		if (convolve_slab(&p, first, smalti_min(rows - first, p.conv.rows), error))
			return -1;
	copy_edges(rows, p.conv.width / a->stride * a->out, data->y, data->top, data->bottom);
	return 0;
}
