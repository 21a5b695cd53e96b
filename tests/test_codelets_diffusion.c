/* SPDX-License-Identifier: Apache-2.0
 *
 * The codelets of a DiT's conditioning, of layouts and of diffusion. */
#include "codelet_case.h"
#include "kernels/conditioning.h"
#include "samplers/noise.h"

#include <math.h>
#include <string.h>

/* The DiT's conditioning */

static void conditioning(void)
{
	static const float values[3] = {0, 999, 12.5f};
	float waves[3 * SMALTI_SINUSOID_SIZE], alone[SMALTI_SINUSOID_SIZE];
	RUN(sinusoid, (.values = values, .y = waves), .rows = 3);
	for (int row = 0; row < 3; row++) {
		smalti_sinusoid(values[row], alone);
		CHECK(memcmp(alone, waves + row * SMALTI_SINUSOID_SIZE, sizeof(alone)) == 0, "sinusoid");
	}
	CHECK(waves[0] == 1 && waves[SMALTI_SINUSOID_SIZE / 2] == 0, "cosines first");

	float rows[6] = {1, 2, 3, 4, 5, 6};
	RUN(add_row, (.row = ((const float[]){10, 20, 30}), .y = rows), .rows = 2, .dim = 3);
	CHECK(memcmp(rows, ((const float[]){11, 22, 33, 14, 25, 36}), sizeof(rows)) == 0, "add_row");

	/* two blocks of two rows, at the last of three steps */
	const float embedding[6] = {1e6f, 1e6f, 1e6f, 1e6f, 100, 200};
	float y[4];
	RUN(modulation, (.table = ((const float[]){1, 2, 3, 4}), .embedding = embedding, .y = y), .rows = 4,
	    .dim = 1, .period = 2, .step = 2);
	CHECK(memcmp(y, ((const float[]){101, 202, 103, 204}), sizeof(y)) == 0, "modulation");

	/* rows 1 and 3 of the modulation; x of mean 0 and variance 1 */
	const float modulation[8] = {9, 9, 10, 20, 9, 9, 1, 3}, x[2] = {-1, 1};
	float normed[2];
	RUN(ln_modulate, (.x = x, .modulation = modulation, .y = normed), .rows = 1, .dim = 2, .shift_row = 1,
	    .scale_row = 3, .epsilon = 0);
	CHECK(fabsf(normed[0] - 8) < 1e-5f && fabsf(normed[1] - 24) < 1e-5f, "ln_modulate");
}

/* Layout */

static void layout(void)
{
	char y[5] = "....";
	RUN(concat, (.first = "abc", .second = "d", .y = y), .first_bytes = 3, .second_bytes = 1);
	CHECK(strcmp(y, "abcd") == 0, "concat");
	RUN(copy, (.x = "wxyz", .y = y), .bytes = 3);
	CHECK(strcmp(y, "wxyd") == 0, "copy");
	RUN(clear, (.y = y), .bytes = 2);
	CHECK(memcmp(y, "\0\0yd", 5) == 0, "clear");
}

struct area {
	int64_t channels, height, width, patch, left, columns;
};

/* Where value `k` of an area's tokens is in the planes. */
static int64_t pixel_of(const struct area *a, bool last, int64_t k)
{
	const int64_t values = a->channels * a->patch * a->patch, token = k / values, value = k % values;
	const int64_t channel = last ? value % a->channels : value / (a->patch * a->patch);
	const int64_t within = last ? value / a->channels : value % (a->patch * a->patch);
	const int64_t row = token / a->columns * a->patch + within / a->patch;
	const int64_t column = (a->left + token % a->columns) * a->patch + within % a->patch;
	return (channel * a->height + row) * a->width + column;
}

static void check_area(const struct area *a, bool last)
{
	static uint64_t state = 8;
	const int64_t pixels = a->channels * a->height * a->width, tokens = a->height / a->patch * a->columns;
	const int64_t values = a->channels * a->patch * a->patch, count = tokens * values;
	float *planes = random_floats(pixels, &state), *whole = fresh_floats(count);
	float *banded = fresh_floats(count), *back = fresh_floats(pixels);
	RUN(patchify, (.planes = planes, .tokens = whole), a->channels, a->height, a->width, a->patch,
	    a->left, a->columns, 0, tokens, 2, last);
	for (int64_t k = 0; k < count; k++)
		CHECK(whole[k] == 2 * planes[pixel_of(a, last, k)], "patchify");
	for (int64_t band = 1; band <= tokens; band += 2) {
		memcpy(back, planes, (size_t)pixels * sizeof(float));
		for (int64_t k = 0; k < count; k++)
			back[pixel_of(a, last, k)] = 7;
		for (int64_t first = 0; first < tokens; first += band) {
			int64_t rows = tokens - first < band ? tokens - first : band;
			RUN(patchify, (.planes = planes, .tokens = banded + first * values), a->channels,
			    a->height, a->width, a->patch, a->left, a->columns, first, rows, 2, last);
			RUN(unpatchify, (.tokens = banded + first * values, .planes = back), a->channels,
			    a->height, a->width, a->patch, a->left, a->columns, first, rows, 0.5f, last);
		}
		CHECK(memcmp(banded, whole, (size_t)count * sizeof(float)) == 0, "bands");
		CHECK(memcmp(back, planes, (size_t)pixels * sizeof(float)) == 0, "there and back");
	}
	free(planes);
	free(whole);
	free(banded);
	free(back);
}

static void patches(void)
{
	static const struct area areas[] = {{4, 6, 10, 2, 0, 5}, {4, 6, 10, 2, 2, 3}, {1, 1, 1, 1, 0, 1},
					    {3, 9, 6, 3, 0, 2},  {3, 9, 6, 3, 1, 1},  {4, 2, 2, 2, 0, 1},
					    {5, 7, 3, 1, 0, 3},  {5, 7, 3, 1, 0, 2}};
	for (int i = 0; i < 2 * COUNT(areas); i++)
		check_area(&areas[i / 2], i % 2);
}

/* Diffusion */

static void noise(void)
{
	struct smalti_generator generator, other;
	float y[2][21], expected[2][21];
	smalti_generator_seed(&generator, 9);
	smalti_generator_seed(&other, 9);
	for (int draw = 0; draw < 2; draw++) {
		RUN(noise, (.generator = &generator, .planes = y[draw]), .count = 21, .dtype = SMALTI_F16);
		smalti_randn(&other, SMALTI_F16, 21, expected[draw]);
	}
	CHECK(memcmp(y, expected, sizeof(y)) == 0, "the stream goes on");
}

/* u + s·(c − u) of the first channels only, from the output's order to that of the latents. */
static void guidance(void)
{
	enum {
		CHANNELS = 2,
		OUT_CHANNELS = 4,
		PATCH = 2,
		HEIGHT = 4,
		WIDE = 6,
		ALL = 6,
		FIRST = 1,
		ROWS = 4
	};
	enum { AREA = PATCH * PATCH, OUT = OUT_CHANNELS * AREA, IN = CHANNELS * AREA };
	struct smalti_sampler_step step = {.next = {.x = 1, .output = 10, .noise = 100}, .draws_noise = true};
	uint64_t state = 10;
	float *c = random_floats(ROWS * OUT, &state), *u = random_floats(ROWS * OUT, &state);
	float *x = random_floats(ROWS * IN, &state),
	      *planes = random_floats(CHANNELS * HEIGHT * WIDE, &state);
	float noise_tokens[ALL * IN], guided[ROWS * IN], alone[ROWS * IN];
	RUN(patchify, (.planes = planes, .tokens = noise_tokens), CHANNELS, HEIGHT, WIDE, PATCH, 0,
	    WIDE / PATCH, 0, ALL, 1, false);
	memcpy(guided, x, sizeof(guided));
	memcpy(alone, x, sizeof(alone));
	RUN(sampler_step, (.conditional = c, .unconditional = u, .noise = planes, .x = guided), .step = step,
	    .rows = ROWS, .channels = CHANNELS, .out_channels = OUT_CHANNELS, .patch = PATCH,
	    .columns = WIDE / PATCH, .first = FIRST, .height = HEIGHT, .width = WIDE, .guidance = 3);
	step.next.noise = 0;
	RUN(sampler_step, (.conditional = c, .x = alone), .step = step, .rows = ROWS, .channels = CHANNELS,
	    .out_channels = OUT_CHANNELS, .patch = PATCH, .columns = WIDE / PATCH, .first = FIRST,
	    .height = HEIGHT, .width = WIDE, .guidance = 3);
	for (int i = 0; i < ROWS * IN; i++) {
		int token = i / IN, channel = i % IN / AREA, pixel = i % AREA;
		int at = token * OUT + pixel * OUT_CHANNELS + channel;
		double v = (double)u[at] + 3 * ((double)c[at] - (double)u[at]);
		double expected = (double)x[i] + 10 * v + 100 * (double)noise_tokens[FIRST * IN + i];
		CHECK(fabs((double)guided[i] - expected) < 1e-4, "guided");
		CHECK(fabs((double)alone[i] - ((double)x[i] + 10 * (double)c[at])) < 1e-5, "alone");
	}
	free(c);
	free(u);
	free(x);
	free(planes);
}

/* In and out of the graph: what a source or a sink says is what the task says. */

static int refuse(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EIO, "%s: %lld, %g", (const char *)user, (long long)count,
			   (double)*values);
}

static int refuse_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		       struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EIO, "%s: %lld+%lld×%lld, %g", (const char *)user, (long long)first,
			   (long long)rows, (long long)width, (double)*pixels);
}

static int fill_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		     struct smalti_error *error)
{
	*pixels = 0.5f;
	return refuse_rows(user, first, rows, width, pixels, error);
}

static void sinks_and_sources(void)
{
	struct smalti_error error = SMALTI_NO_ERROR, row_error = SMALTI_NO_ERROR;
	struct smalti_error source_error = SMALTI_NO_ERROR;
	const float x[1] = {0.5f};
	float y[1] = {0};
	char user[] = "sink";
	int status = CALL(deliver, (.x = x), &error, .count = 1, .sink = refuse, .user = user);
	FAILS(status, &error, SMALTI_EIO, "deliver", "sink: 1, 0.5");
	status = CALL(emit_rows, (.x = x), &row_error, .rows = 1, .width = 2, .first = 3, .sink = refuse_rows,
		      .user = user);
	FAILS(status, &row_error, SMALTI_EIO, "emit_rows", "sink: 3+1×2, 0.5");
	status = CALL(read_rows, (.y = y), &source_error, .rows = 1, .width = 2, .first = 3,
		      .source = fill_rows, .user = user);
	FAILS(status, &source_error, SMALTI_EIO, "read_rows", "sink: 3+1×2, 0.5");
	CHECK(y[0] == 0.5f, "read_rows");
}

static const struct test tests[] = {
    {"conditioning", conditioning}, {"layout", layout},
    {"patches", patches},           {"noise", noise},
    {"guidance", guidance},         {"sinks and sources", sinks_and_sources},
};

TEST_MAIN("codelets of diffusion", tests)
