/* SPDX-License-Identifier: Apache-2.0
 *
 * The VAE's codelets, band by band, against the plain formulas on the whole map in double. */
#include "codelet_case.h"
#include "kernels/conv.h"
#include "kernels/groupnorm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double epsilon = 1e-6;

static void latent_rows(void)
{
	enum { CHANNELS = 3, HEIGHT = 5, WIDTH = 7, ROW = WIDTH * CHANNELS };
	uint64_t state = 1;
	float *planes = random_floats(CHANNELS * HEIGHT * WIDTH, &state), y[HEIGHT * ROW];
	for (int64_t band = 1; band <= HEIGHT; band++) {
		for (int64_t first = 0; first < HEIGHT; first += band)
			RUN(latent_rows, (.planes = planes, .y = y + first * ROW), .channels = CHANNELS,
			    .height = HEIGHT, .width = WIDTH, .first_row = first,
			    .rows = HEIGHT - first < band ? HEIGHT - first : band, .scale = 4);
		for (int i = 0; i < HEIGHT * ROW; i++) {
			int row = i / ROW, column = i % ROW / CHANNELS, channel = i % CHANNELS;
			CHECK(y[i] == 4 * planes[(channel * HEIGHT + row) * WIDTH + column], "latent_rows");
		}
	}
	free(planes);
}

/* In bands of rows, into planes that hold something else already. */
static void posterior_rows(void)
{
	enum { CHANNELS = 2, HEIGHT = 5, WIDTH = 3, PLANE = HEIGHT * WIDTH };
	uint64_t state = 1;
	float *x = random_floats(2 * CHANNELS * PLANE, &state), planes[2 * CHANNELS * PLANE];
	x[CHANNELS] = 1e3f;
	x[CHANNELS + 1] = -1e3f;
	x[3 * CHANNELS] = NAN;
	for (int64_t band = 1; band <= HEIGHT; band++) {
		memset(planes, 0xff, sizeof(planes));
		for (int64_t first = 0; first < HEIGHT; first += band)
			RUN(posterior_rows, (.moments = x + first * WIDTH * 2 * CHANNELS, .planes = planes),
			    .channels = CHANNELS, .height = HEIGHT, .width = WIDTH, .first_row = first,
			    .rows = HEIGHT - first < band ? HEIGHT - first : band);
		for (int i = 0; i < 2 * CHANNELS * PLANE; i++) {
			const float value = x[i % PLANE * 2 * CHANNELS + i / PLANE];
			double expected = (double)value;
			if (i / PLANE >= CHANNELS)
				expected = exp(0.5 * (value > 20 ? 20 : value < -30 ? -30 : expected));
			CHECK(isnan(value) ? isnan(planes[i])
					   : fabs((double)planes[i] - expected) <= 1e-6 * fabs(expected),
			      "posterior_rows");
		}
	}
	free(x);
}

/* Statistics */

static void same_moments(const struct smalti_moments *found, int64_t pixels, int64_t channels, int64_t groups,
			 const float *x, const char *what)
{
	for (int64_t group = 0; group < groups; group++) {
		struct smalti_moments m = kernel_moments(pixels, channels, groups, group, x);
		CHECK(found[group].count == m.count && fabs(found[group].mean - m.mean) < 1e-12 &&
			  fabs(found[group].m2 - m.m2) < 1e-9 * m.m2 + 1e-12,
		      what);
	}
}

/* The tree that graphs make of it is that of test_features. */
static void merge_moments(void)
{
	enum { CHANNELS = 6, GROUPS = 3, PIXELS = 5 };
	uint64_t state = 2;
	float *x = random_floats(SMALTI_MANY * PIXELS * CHANNELS, &state);
	struct smalti_moments part[SMALTI_MANY][GROUPS], merged[GROUPS];
	for (int parts = 1; parts <= SMALTI_MANY; parts++) {
		struct merge_moments_data data = {.merged = merged};
		for (int i = 0; i < parts; i++) {
			RUN(edges, (.x = x + i * PIXELS * CHANNELS, .moments = part[i]), .rows = 1,
			    .width = PIXELS, .channels = CHANNELS, .groups = GROUPS);
			data.parts[i] = part[i];
		}
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_cpu_merge_moments(
			     &data, &(const struct merge_moments_arguments){.groups = GROUPS}, &error),
			 &error, "merge_moments");
		same_moments(merged, parts * PIXELS, CHANNELS, GROUPS, x, "merge_moments");
	}
	free(x);
}

static void edges(void)
{
	enum { WIDTH = 3, CHANNELS = 4, ROW = WIDTH * CHANNELS, MOST = 3 };
	uint64_t state = 3;
	float *x = random_floats(MOST * ROW, &state);
	for (int rows = 1; rows <= MOST; rows++) {
		float top[ROW], bottom[ROW];
		struct smalti_moments moments[2];
		RUN(edges, (.x = x, .top = top, .bottom = bottom, .moments = moments), .rows = rows,
		    .width = WIDTH, .channels = CHANNELS, .groups = 2);
		CHECK(memcmp(top, x, sizeof(top)) == 0, "top");
		CHECK(memcmp(bottom, x + (rows - 1) * ROW, sizeof(bottom)) == 0, "bottom");
		same_moments(moments, rows * WIDTH, CHANNELS, 2, x, "moments");
		RUN(edges, (.x = x), .rows = rows, .width = WIDTH, .channels = CHANNELS);
	}
	free(x);
}

/* A convolution as the graph has it: GroupNorm and SiLU, ×2, 3×3. */

struct shape {
	int64_t height, width, in, out, groups, y_groups; /* groups 0: as it is */
	bool upsample, residual;
	int stride;
};

struct problem {
	struct shape s;
	int64_t scale;
	float *x, *w, *bias, *gamma, *beta, *before;
	void *packed;
	struct smalti_moments *moments;
	double *expected; /* [rows, columns, out] */
	int64_t rows, columns;
};

/* f(x) at a pixel of the scaled map; 0 outside of it. */
static double prepared(const struct problem *p, int64_t row, int64_t column, int64_t channel)
{
	const struct shape *s = &p->s;
	if (row < 0 || column < 0 || row >= p->scale * s->height || column >= p->scale * s->width)
		return 0;
	double value = (double)p->x[(row / p->scale * s->width + column / p->scale) * s->in + channel];
	if (!s->groups)
		return value;
	const struct smalti_moments *m = &p->moments[channel / (s->in / s->groups)];
	value = (value - m->mean) / sqrt(m->m2 / m->count + epsilon) * (double)p->gamma[channel] +
		(double)p->beta[channel];
	return value / (1 + exp(-value));
}

static double convolved(const struct problem *p, int64_t row, int64_t column, int64_t out)
{
	double sum = (double)p->bias[out];
	const int before = p->s.stride == 1; /* rows and columns outside, above and on the left */
	for (int64_t channel = 0; channel < p->s.in; channel++)
		for (int k = 0; k < 9; k++)
			sum += (double)p->w[(out * p->s.in + channel) * 9 + k] *
			       prepared(p, row * p->s.stride + k / 3 - before,
					column * p->s.stride + k % 3 - before, channel);
	return sum;
}

static int64_t out_count(const struct problem *p)
{
	return p->rows * p->columns * p->s.out;
}

static void pack(struct problem *p)
{
	const struct shape *s = &p->s;
	const int64_t count = s->out * s->in * 9;
	struct misaligned raw = kernel_misalign(SMALTI_F16, p->w, count);
	p->packed =
	    form_of(&(const struct smalti_weight_source){.kind = SMALTI_WEIGHT_KERNEL,
							 .in = s->in,
							 .out = s->out,
							 .stride = s->stride,
							 .parts = 1,
							 .part = {view_of(SMALTI_F16, raw.data, count)}},
		    SMALTI_DEVICE_CPU);
	free(raw.block);
}

static struct problem pose(const struct shape *s, uint64_t *state)
{
	struct problem p = {.s = *s, .scale = s->upsample ? 2 : 1};
	p.rows = p.scale * s->height / s->stride;
	p.columns = p.scale * s->width / s->stride;
	p.x = random_floats(s->height * s->width * s->in, state);
	p.w = random_floats(s->out * s->in * 9, state);
	p.bias = random_floats(s->out, state);
	p.gamma = random_floats(s->in, state);
	p.beta = random_floats(s->in, state);
	p.before = random_floats(out_count(&p), state);
	pack(&p);
	p.moments = calloc((size_t)s->groups + 1, sizeof(*p.moments));
	p.expected = calloc((size_t)out_count(&p), sizeof(*p.expected));
	if (!p.moments || !p.expected)
		abort();
	for (int64_t group = 0; group < s->groups; group++)
		p.moments[group] = kernel_moments(s->height * s->width, s->in, s->groups, group, p.x);
	for (int64_t i = 0; i < out_count(&p); i++) {
		int64_t pixel = i / s->out;
		p.expected[i] = (s->residual ? (double)p.before[i] : 0) +
				convolved(&p, pixel / p.columns, pixel % p.columns, i % s->out);
	}
	return p;
}

static void dispose(struct problem *p)
{
	free(p->x);
	free(p->w);
	free(p->bias);
	free(p->gamma);
	free(p->beta);
	free(p->before);
	free(p->packed);
	free(p->moments);
	free(p->expected);
}

/* Rows first … of x to their place in y, as a task of the graph does. */
static void solve_band(const struct problem *p, int64_t first, int64_t rows, float *y, const char *what)
{
	const struct shape *s = &p->s;
	const int64_t in_row = s->width * s->in, out_row = p->columns * s->out;
	const int64_t y_rows = p->scale * rows / s->stride;
	float *band = y + p->scale * first / s->stride * out_row, *top = fresh_floats(out_row),
	      *bottom = fresh_floats(out_row);
	struct smalti_moments moments[8];
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct conv_data data = {
	    .x = p->x + first * in_row,
	    .above = first ? p->x + (first - 1) * in_row : NULL,
	    .below = first + rows < s->height ? p->x + (first + rows) * in_row : NULL,
	    .moments = s->groups ? p->moments : NULL,
	    .gamma = p->gamma,
	    .beta = p->beta,
	    .weight = p->packed,
	    .bias = p->bias,
	    .y = band,
	    .top = top,
	    .bottom = bottom,
	    .y_moments = s->y_groups ? moments : NULL,
	};
	const struct conv_arguments arguments = {.rows = rows,
						 .width = s->width,
						 .in = s->in,
						 .out = s->out,
						 .stride = s->stride,
						 .groups = s->groups,
						 .y_groups = s->y_groups,
						 .epsilon = (float)epsilon,
						 .upsample = s->upsample,
						 .residual = s->residual};
	SUCCEEDS(smalti_cpu_conv(&data, &arguments, &error), &error, what);
	CHECK(memcmp(top, band, (size_t)out_row * sizeof(float)) == 0, what);
	CHECK(memcmp(bottom, band + (y_rows - 1) * out_row, (size_t)out_row * sizeof(float)) == 0, what);
	same_moments(moments, y_rows * p->columns, s->out, s->y_groups, band, what);
	free(top);
	free(bottom);
}

static void solve(const struct problem *p, int64_t band)
{
	const struct shape *s = &p->s;
	char what[96];
	snprintf(what, sizeof(what), "%lld×%lld, %lld to %lld channels, bands of %lld", (long long)s->height,
		 (long long)s->width, (long long)s->in, (long long)s->out, (long long)band);
	float *y = fresh_floats(out_count(p));
	memcpy(y, p->before, (size_t)out_count(p) * sizeof(*y));
	for (int64_t first = 0; first < s->height; first += band)
		solve_band(p, first, s->height - first < band ? s->height - first : band, y, what);
	double error = 0, largest = 0;
	for (int64_t i = 0; i < out_count(p); i++) {
		error = fmax(error, fabs((double)y[i] - p->expected[i]));
		largest = fmax(largest, fabs(p->expected[i]));
	}
	CHECK(error <= 2e-6 * largest, what);
	free(y);
}

static void conv(void)
{
	static const struct shape shapes[] = {
	    {1, 1, 1, 1, 0, 0, false, false, 1},    {1, 1, 4, 4, 2, 2, true, true, 1},
	    {7, 1, 4, 6, 4, 3, false, false, 1},    {1, 13, 6, 4, 3, 2, false, true, 1},
	    {5, 7, 8, 3, 2, 0, false, false, 1},    {8, 5, 4, 8, 0, 4, true, false, 1},
	    {3, 31, 16, 16, 4, 8, true, false, 1},  {9, 2, 3, 5, 3, 5, false, true, 1},
	    {6, 17, 32, 8, 8, 8, false, true, 1},   {2, 2, 1, 1, 0, 0, false, false, 2},
	    {6, 10, 4, 8, 2, 4, false, false, 2},   {10, 2, 16, 3, 0, 3, false, true, 2},
	    {14, 34, 5, 16, 5, 0, false, false, 2},
	};
	uint64_t state = 4;
	for (int i = 0; i < COUNT(shapes); i++) {
		struct problem p = pose(&shapes[i], &state);
		for (int64_t band = shapes[i].stride; band <= shapes[i].height; band += shapes[i].stride)
			solve(&p, band);
		dispose(&p);
	}
}

static void groupnorm(void)
{
	enum { PIXELS = 13, CHANNELS = 6, GROUPS = 2 };
	uint64_t state = 5;
	float *x = random_floats(PIXELS * CHANNELS, &state), *gamma = random_floats(CHANNELS, &state);
	float *beta = random_floats(CHANNELS, &state), y[PIXELS * CHANNELS];
	struct smalti_moments moments[GROUPS];
	for (int64_t group = 0; group < GROUPS; group++)
		moments[group] = kernel_moments(PIXELS, CHANNELS, GROUPS, group, x);
	RUN(groupnorm, (.x = x, .moments = moments, .gamma = gamma, .beta = beta, .y = y), .pixels = PIXELS,
	    .channels = CHANNELS, .groups = GROUPS, .epsilon = (float)epsilon);
	for (int i = 0; i < PIXELS * CHANNELS; i++) {
		int channel = i % CHANNELS;
		const struct smalti_moments *m = &moments[channel / (CHANNELS / GROUPS)];
		double z = ((double)x[i] - m->mean) / sqrt(m->m2 / m->count + epsilon);
		CHECK(fabs((double)y[i] - (z * (double)gamma[channel] + (double)beta[channel])) < 1e-5,
		      "groupnorm");
	}
	free(x);
	free(gamma);
	free(beta);
}

static const struct test tests[] = {
    {"latent_rows", latent_rows},     {"posterior_rows", posterior_rows},
    {"merge_moments", merge_moments}, {"edges", edges},
    {"conv in bands", conv},          {"groupnorm", groupnorm},
};

TEST_MAIN("codelets of the VAE", tests)
