/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conv_band.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

void smalti_band_edges(int64_t rows, int64_t width, int64_t channels, int64_t groups, const float *x,
		       float *top, float *bottom, struct smalti_moments *moments)
{
	const size_t row_bytes = (size_t)(width * channels) * sizeof(float);
	if (top)
		memcpy(top, x, row_bytes);
	if (bottom)
		memcpy(bottom, x + (rows - 1) * width * channels, row_bytes);
	if (moments)
		smalti_kernels()->groupnorm_moments(rows * width, channels, groups, x, moments);
}

void smalti_upsample_row(int64_t width, int64_t channels, enum smalti_dtype dtype, const void *x, void *y)
{
	size_t bytes = (size_t)(channels * smalti_dtype_bytes(dtype));
	const char *from = x;
	char *to = y;
	for (int64_t pixel = 0; pixel < width; pixel++, from += bytes, to += 2 * bytes) {
		memcpy(to, from, bytes);
		memcpy(to + bytes, from, bytes);
	}
}

/* The convolution of a band, a slab of rows at a time. The slab's input lines, with one above and one below,
 * are assembled shortly before the kernel, so that caches still hold them. */
struct context {
	const struct smalti_conv_band *band;
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
	const struct smalti_conv_band *band = p->band;
	char *direct = p->scale == 2 ? p->normalised : line;
	if (p->coefficients)
		smalti_kernels()->groupnorm_apply(band->width, band->in, row, p->coefficients,
						  p->coefficients + band->in, true, band->compute, direct);
	else
		smalti_kernels()->convert(band->width * band->in, SMALTI_F32, row, band->compute, direct);
	if (p->scale == 2)
		smalti_upsample_row(band->width, band->in, band->compute, direct, line);
}

/* Returns the input lines of some rows. Stride 2 needs none above. */
static int64_t lines_of(const struct context *p, int64_t rows)
{
	return p->conv.stride == 2 ? 2 * rows + 1 : rows + 2;
}

/* Writes row `row` of the scaled map, from -1 to scale·rows, into line `line` of the slab. */
static void put_line(const struct context *p, int64_t row, int64_t line)
{
	const struct smalti_conv_band *band = p->band;
	char *to = p->lines + line * p->line_bytes;
	if (p->scale == 2 && row % 2 == 1 && line > 0) {
		memcpy(to, to - p->line_bytes, (size_t)p->line_bytes);
		return;
	}
	const float *from = row < 0 ? p->band->above
			    : row == p->scale * band->rows
				? p->band->below
				: (const float *)p->band->x + row / p->scale * band->width * band->in;
	if (from)
		put_row(p, from, to);
	else /* the image's border: zeros of the normalised map */
		memset(to, 0, (size_t)p->line_bytes);
}

static int prepare(struct context *p, struct smalti_error *error)
{
	const struct smalti_conv_band *band = p->band;
	const int64_t coefficient_bytes = 2 * band->in * (int64_t)sizeof(float);
	const int64_t moments_bytes = band->y_groups * (int64_t)sizeof(struct smalti_moments);
	p->line_bytes = p->conv.width * band->in * smalti_dtype_bytes(band->compute);
	p->lines = smalti_scratch(SMALTI_SCRATCH_ASSEMBLE, lines_of(p, p->conv.rows) * p->line_bytes, error);
	char *extra =
	    smalti_scratch(SMALTI_SCRATCH_ROWS, moments_bytes + coefficient_bytes + p->line_bytes, error);
	if (!p->lines || !extra)
		return -1;
	float *coefficients = (float *)(void *)(extra + moments_bytes);
	if (p->band->y_moments)
		p->moments = (struct smalti_moments *)(void *)extra;
	p->normalised = extra + moments_bytes + coefficient_bytes;
	if (!p->band->moments)
		return 0;
	smalti_groupnorm_coefficients(band->in, band->groups, p->band->moments, (double)band->epsilon,
				      p->band->gamma, p->band->beta, coefficients, coefficients + band->in);
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
	float *y = (float *)p->band->y + first * width * conv.out;
	if (known)
		memcpy(p->lines, p->lines + (lines_of(p, conv.rows) - known) * p->line_bytes,
		       (size_t)(known * p->line_bytes));
	for (int64_t line = known; line < lines_of(p, rows); line++)
		put_line(p, top + line, line);
	conv.rows = rows;
	if (smalti_conv(&conv, p->lines, p->band->weight, p->band->bias, y, error) < 0)
		return -1;
	if (p->moments) {
		smalti_kernels()->groupnorm_moments(rows * width, conv.out, p->band->y_groups, y, p->moments);
		smalti_moments_merge(p->band->y_groups, p->moments, p->band->y_moments);
	}
	return 0;
}

int smalti_conv_band(const struct smalti_conv_band *band, struct smalti_error *error)
{
	struct context p = {.band = band, .scale = band->upsample ? 2 : 1};
	const int64_t rows = p.scale * band->rows / band->stride;
	p.conv = (struct smalti_conv){.rows = rows,
				      .width = p.scale * band->width,
				      .in = band->in,
				      .out = band->out,
				      .stride = band->stride,
				      .compute = band->compute,
				      .residual = band->residual};
	p.conv.rows = smalti_conv_slab(&p.conv);
	if (prepare(&p, error) < 0)
		return -1;
	if (band->y_moments)
		memset(band->y_moments, 0, (size_t)band->y_groups * sizeof(struct smalti_moments));
	for (int64_t first = 0; first < rows; first += p.conv.rows)
		if (convolve_slab(&p, first, rows - first < p.conv.rows ? rows - first : p.conv.rows, error))
			return -1;
	smalti_band_edges(rows, p.conv.width / band->stride, band->out, band->y_groups, band->y, band->top,
			  band->bottom, NULL);
	return 0;
}
