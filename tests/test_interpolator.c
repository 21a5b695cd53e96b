/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "jobs/interpolator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANNELS = 3 };

static const struct sizes {
	int64_t from_height, from_width, height, width;
	int64_t resized_height, resized_width; /* what diffusers makes of it before it crops */
} cases[] = {
    {8, 8, 8, 8, 8, 8},       {1, 1, 3, 5, 5, 5},   {7, 5, 3, 2, 3, 2},         {5, 7, 11, 13, 11, 15},
    {16, 16, 1, 1, 1, 1},     {32, 8, 9, 9, 36, 9}, {12, 20, 11, 20, 12, 20},   {6, 4, 3, 40, 60, 40},
    {13, 17, 26, 34, 26, 34}, {9, 4, 4, 3, 6, 3},   {272, 240, 76, 67, 76, 67}, {160, 384, 100, 76, 100, 240},
};

struct image {
	int64_t width, next;
	float *values;
};

static int keep(void *user, int64_t row, const float *pixels, struct smalti_error *error)
{
	struct image *image = user;
	(void)error;
	CHECK(row == image->next++, "rows in their order");
	for (int64_t i = 0; i < image->width * CHANNELS; i++)
		image->values[row * image->width * CHANNELS + i] = pixels[i];
	return 0;
}

/* Bilinear, pixel centres at halves, the border repeated. */
static double sample(const struct sizes *s, const float *x, double y_at, double x_at, int64_t channel)
{
	const int64_t top = (int64_t)floor(y_at), left = (int64_t)floor(x_at);
	double sum = 0;
	for (int64_t i = 0; i < 4; i++) {
		int64_t row = top + i / 2, column = left + i % 2;
		const double weight = (1 - fabs(y_at - (double)row)) * (1 - fabs(x_at - (double)column));
		row = row < 0 ? 0 : row < s->from_height ? row : s->from_height - 1;
		column = column < 0 ? 0 : column < s->from_width ? column : s->from_width - 1;
		sum += weight * x[(row * s->from_width + column) * CHANNELS + channel];
	}
	return sum;
}

/* Where a sample of the result lies: in floats, as torch reckons. */
static float place(int64_t from, int64_t resized, int64_t to, int64_t at)
{
	const int64_t start = (resized - to) / 2;
	return (float)from / (float)resized * ((float)(start + at) + 0.5F) - 0.5F;
}

static double expected(const struct sizes *s, const float *x, int64_t row, int64_t column, int64_t channel)
{
	return sample(s, x, place(s->from_height, s->resized_height, s->height, row),
		      place(s->from_width, s->resized_width, s->width, column), channel);
}

/* Given in pieces of `rows` rows. */
static void check_case(const struct sizes *s, int64_t rows)
{
	char what[96];
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t line = s->from_width * CHANNELS, count = s->height * s->width * CHANNELS;
	float *x = malloc((size_t)(s->from_height * line) * sizeof(*x));
	struct image y = {.width = s->width, .values = calloc((size_t)count, sizeof(float))};
	test_fill(x, s->from_height * line, 0.37, 1.1);
	struct smalti_interpolator *it =
	    smalti_interpolator_new(s->from_height, s->from_width, s->height, s->width, &error);
	SUCCEEDS(it ? 0 : -1, &error, "interpolator");
	for (int64_t first = 0; first < s->from_height; first += rows) {
		const int64_t left = s->from_height - first;
		SUCCEEDS(smalti_interpolator_rows(it, first, left < rows ? left : rows, x + first * line,
						  keep, &y, &error),
			 &error, "rows");
	}
	double max = 0;
	for (int64_t i = 0; i < count; i++)
		max = fmax(max, fabs(y.values[i] - expected(s, x, i / CHANNELS / s->width,
							    i / CHANNELS % s->width, i % CHANNELS)));
	snprintf(what, sizeof(what), "%lldx%lld to %lldx%lld by %lld rows: %g", (long long)s->from_width,
		 (long long)s->from_height, (long long)s->width, (long long)s->height, (long long)rows, max);
	CHECK(y.next == s->height && max < 1e-6, what);
	smalti_interpolator_free(it);
	free(x);
	free(y.values);
}

static void resized_and_cropped(void)
{
	static const int64_t pieces[] = {1, 2, 3, 8, 1000};
	for (int i = 0; i < COUNT(cases); i++)
		for (int k = 0; k < COUNT(pieces); k++)
			check_case(&cases[i], pieces[k]);
}

static int refuse(void *user, int64_t row, const float *pixels, struct smalti_error *error)
{
	(void)user;
	(void)pixels;
	return row < 2 ? 0 : smalti_fail(error, SMALTI_EIO, "row %lld", (long long)row);
}

static void a_sink_that_fails_ends_it(void)
{
	static const float x[4 * 4 * CHANNELS] = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_interpolator *it = smalti_interpolator_new(4, 4, 8, 8, &error);
	FAILS(smalti_interpolator_rows(it, 0, 4, x, refuse, NULL, &error), &error, SMALTI_EIO, "a sink",
	      "row 2");
	smalti_interpolator_free(it);
}

static const struct test tests[] = {
    {"resized and cropped", resized_and_cropped},
    {"a sink that fails ends it", a_sink_that_fails_ends_it},
};

TEST_MAIN("interpolator", tests)
