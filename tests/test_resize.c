/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/safetensors.h"
#include "harness.h"
#include "jobs/resizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const filters[] = {"bilinear", "bicubic", "lanczos"};

/* An image that gives its rows in order and counts them. */
struct image {
	int64_t height, width;
	const uint8_t *pixels;
	int64_t given;    /* rows */
	bool out_of_turn; /* some were asked for */
	int64_t fails_at; /* a row; -1: none */
};

static int give_rows(void *user, int64_t first, int64_t count, uint8_t *rows, struct smalti_error *error)
{
	struct image *p = user;
	p->out_of_turn |= first != p->given || count < 1 || count > p->height - first;
	if (p->out_of_turn)
		return smalti_fail(error, SMALTI_EINVAL, "row %lld out of turn", (long long)first);
	p->given += count;
	if (p->fails_at >= first && p->fails_at < first + count)
		return smalti_fail(error, SMALTI_EFORMAT, "damaged row %lld", (long long)p->fails_at);
	memcpy(rows, p->pixels + first * p->width * 3, (size_t)(count * p->width * 3));
	return 0;
}

/* The crop, `step` rows at a time; free with free(). */
static uint8_t *resize(struct image *p, const struct smalti_fit *fit, int filter, int64_t step)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	p->given = 0;
	p->fails_at = -1;
	struct smalti_resizer *resizer =
	    smalti_resizer_open(p->height, p->width, fit, (enum smalti_filter)filter, give_rows, p, &error);
	SUCCEEDS(resizer ? 0 : -1, &error, "open");
	const int64_t row = fit->crop_width * 3;
	uint8_t *made = malloc((size_t)(fit->crop_height * row));
	for (int64_t y = 0; y < fit->crop_height; y += step) {
		const int64_t count = step < fit->crop_height - y ? step : fit->crop_height - y;
		SUCCEEDS(smalti_resizer_rows(resizer, y, count, made + y * row, &error), &error, "rows");
	}
	CHECK(p->given == p->height, "the image is read to its end");
	smalti_resizer_close(resizer);
	return made;
}

static uint8_t *random_pixels(int64_t height, int64_t width, uint64_t seed)
{
	uint8_t *pixels = malloc((size_t)(height * width * 3));
	for (int64_t i = 0; i < height * width * 3; i++) {
		/* Much black and white, so that overshoots are clipped. */
		const float value = test_random(&seed) * 2;
		pixels[i] = (uint8_t)(value < -1 ? 0 : value > 1 ? 255 : 127.5f + 127.5f * value);
	}
	return pixels;
}

static const char *describe(const struct image *p, int filter, int64_t height, int64_t width)
{
	static char text[128];
	snprintf(text, sizeof(text), "%s of %lldx%lld to %lldx%lld", filters[filter], (long long)p->width,
		 (long long)p->height, (long long)width, (long long)height);
	return text;
}

/* golden/resize.safetensors: Pillow's results, "FILTER.HEIGHTxWIDTH", from "in". */
static void results_are_pillows(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file =
	    smalti_safetensors_open(test_data("golden/resize.safetensors"), &error);
	SUCCEEDS(file ? 0 : -1, &error, "golden/resize.safetensors");
	const struct smalti_tensor_view *in = smalti_safetensors_find(file, "in");
	struct image p = {.height = in->shape[0], .width = in->shape[1], .pixels = in->data};
	int compared = 0;
	for (int64_t i = 0; i < file->count; i++) {
		const struct smalti_tensor_view *expected = &file->tensors[i];
		for (int filter = 0; filter < (int)COUNT(filters); filter++) {
			if (strncmp(expected->name, filters[filter], strlen(filters[filter])) != 0)
				continue;
			const struct smalti_fit fit =
			    smalti_fit_stretch(expected->shape[0], expected->shape[1]);
			uint8_t *made = resize(&p, &fit, filter, 7);
			CHECK(memcmp(made, expected->data, (size_t)expected->bytes) == 0, expected->name);
			free(made);
			compared++;
		}
	}
	CHECK(compared == 18, "all of them");
	smalti_safetensors_close(file);
}

static double filter_value(int filter, double t)
{
	const double pi = acos(-1), a = fabs(t);
	switch (filter) {
	case SMALTI_FILTER_BILINEAR:
		return fmax(0, 1 - a);
	case SMALTI_FILTER_BICUBIC:
		return a < 1   ? 1.5 * a * a * a - 2.5 * a * a + 1
		       : a < 2 ? -0.5 * a * a * a + 2.5 * a * a - 4 * a + 2
			       : 0;
	default:
		return a < 1e-9 ? 1 : a < 3 ? 3 * sin(pi * a) * sin(pi * a / 3) / (pi * pi * a * a) : 0;
	}
}

/* One sample of one axis in double, before rounding: `stride` between samples. */
static double naive_sample(int filter, const uint8_t *x, int64_t stride, int64_t in, int64_t out, int64_t at)
{
	const double scale = (double)in / (double)out, wide = fmax(scale, 1),
		     center = ((double)at + 0.5) * scale;
	double sum = 0, weights = 0;
	for (int64_t i = 0; i < in; i++) {
		const double weight = filter_value(filter, ((double)i + 0.5 - center) / wide);
		sum += weight * x[i * stride];
		weights += weight;
	}
	return fmin(fmax(sum / weights, 0), 255);
}

/* Whether each sample of lines along one axis is what the definition gives, rounded; off by what the fixed
 * point of the weights takes: 2^-23 of each tap's 255, so nearly halfway either neighbour will do. */
static bool axis_is_right(int filter, const uint8_t *x, int64_t x_stride, int64_t in, const uint8_t *y,
			  int64_t y_stride, int64_t out)
{
	const double taps = (double)smalti_taps_max((enum smalti_filter)filter, in, out);
	const double slack = 0.5 + 1e-9 + taps * 255 * 0x1p-23;
	for (int64_t at = 0; at < out; at++)
		for (int channel = 0; channel < 3; channel++) {
			const double value = naive_sample(filter, x + channel, x_stride, in, out, at);
			if (fabs(value - y[at * y_stride + channel]) > slack)
				return false;
		}
	return true;
}

/* Each pass by itself: the other keeps its extent, and so changes nothing. */
static void passes_are_what_the_filters_say(void)
{
	static const struct {
		int64_t in, out;
	} sizes[] = {{1, 1},   {1, 2},   {2, 1},   {1, 97},  {97, 1},   {2, 3},   {3, 2},     {5, 4},  {7, 7},
		     {13, 29}, {29, 13}, {31, 64}, {64, 31}, {101, 50}, {101, 3}, {127, 126}, {3, 101}};
	enum { LINES = 23 }; /* 69 values: a block and a rest */
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (int filter = 0; filter < (int)COUNT(filters); filter++) {
			const int64_t in = sizes[i].in, out = sizes[i].out;
			uint8_t *pixels = random_pixels(LINES, in, 11 + i);
			struct image rows = {.height = LINES, .width = in, .pixels = pixels};
			struct image columns = {.height = in, .width = LINES, .pixels = pixels};
			const struct smalti_fit along = smalti_fit_stretch(LINES, out);
			const struct smalti_fit across = smalti_fit_stretch(out, LINES);
			uint8_t *wide = resize(&rows, &along, filter, 1);
			uint8_t *tall = resize(&columns, &across, filter, 3);
			bool right = true;
			for (int64_t line = 0; line < LINES; line++)
				right = right &&
					axis_is_right(filter, pixels + line * in * 3, 3, in,
						      wide + line * out * 3, 3, out) &&
					axis_is_right(filter, pixels + line * 3, 3 * LINES, in,
						      tall + line * 3, 3 * LINES, out);
			CHECK(right, describe(&rows, filter, LINES, out));
			free(pixels);
			free(wide);
			free(tall);
		}
}

/* One pixel wide or high, down and up again. */
static void long_images_are_resized(void)
{
	enum { LONG = 100000, SHORT = 61 };
	uint8_t *pixels = random_pixels(LONG, 1, 5);
	for (int filter = 0; filter < (int)COUNT(filters); filter++)
		for (int tall = 0; tall < 2; tall++) {
			struct image p = {
			    .height = tall ? LONG : 1, .width = tall ? 1 : LONG, .pixels = pixels};
			const struct smalti_fit fit = smalti_fit_stretch(tall ? SHORT : 1, tall ? 1 : SHORT);
			uint8_t *made = resize(&p, &fit, filter, SHORT);
			CHECK(axis_is_right(filter, pixels, 3, LONG, made, 3, SHORT),
			      describe(&p, filter, fit.height, fit.width));
			struct image back = {.height = fit.height, .width = fit.width, .pixels = made};
			const struct smalti_fit again = smalti_fit_stretch(p.height, p.width);
			uint8_t *large = resize(&back, &again, filter, 1000);
			CHECK(axis_is_right(filter, made, 3, SHORT, large, 3, LONG),
			      describe(&back, filter, p.height, p.width));
			free(made);
			free(large);
		}
	free(pixels);
}

static void crops_are_parts_of_the_whole(void)
{
	static const struct {
		int64_t height, width;
		struct smalti_fit fit;
	} cases[] = {
	    {37, 53, {20, 31, 3, 5, 11, 13}},     {37, 53, {80, 101, 0, 0, 1, 1}},
	    {37, 53, {80, 101, 79, 100, 1, 1}},   {5, 9, {192, 345, 0, 4, 192, 336}},
	    {97, 64, {315, 208, 6, 0, 304, 208}}, {311, 131, {13, 7, 2, 0, 11, 1}},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int filter = 0; filter < (int)COUNT(filters); filter++) {
			const struct smalti_fit *fit = &cases[i].fit;
			uint8_t *pixels = random_pixels(cases[i].height, cases[i].width, 17);
			struct image p = {
			    .height = cases[i].height, .width = cases[i].width, .pixels = pixels};
			const struct smalti_fit all = smalti_fit_stretch(fit->height, fit->width);
			uint8_t *whole = resize(&p, &all, filter, 100), *part = resize(&p, fit, filter, 4);
			bool same = true;
			for (int64_t y = 0; y < fit->crop_height; y++)
				same = same && memcmp(part + y * fit->crop_width * 3,
						      whole + ((fit->top + y) * fit->width + fit->left) * 3,
						      (size_t)(fit->crop_width * 3)) == 0;
			CHECK(same, describe(&p, filter, fit->height, fit->width));
			free(pixels);
			free(whole);
			free(part);
		}
}

/* At the borders and between, where 4 million weights are each rounded up to 2^-22, and in order. */
static bool taps_are_fine(enum smalti_filter filter, int64_t in, int64_t out)
{
	const int64_t max = smalti_taps_max(filter, in, out), places[] = {0, out / 2, out - 1};
	struct smalti_taps taps = {.weights = malloc((size_t)max * sizeof(int32_t))};
	int64_t first = 0, end = 1;
	bool fine = true;
	for (size_t i = 0; i < COUNT(places); i++) {
		smalti_taps_make(filter, in, out, places[i], &taps);
		int64_t sum = 0;
		for (int64_t k = 0; k < taps.count; k++)
			sum += llabs((long long)taps.weights[k]);
		fine = fine && sum < (int64_t)2 << 22 && taps.count <= max && taps.first >= first &&
		       taps.first + taps.count >= end && taps.first + taps.count <= in;
		first = taps.first;
		end = taps.first + taps.count;
	}
	free(taps.weights);
	return fine;
}

static void weights_are_small(void)
{
	static const int64_t sides[] = {1, 2, 3, 97, 1000, 4194304, 5999999};
	for (size_t i = 0; i < COUNT(sides); i++)
		for (size_t o = 0; o < COUNT(sides); o++)
			for (int filter = 0; filter < (int)COUNT(filters); filter++) {
				const struct image p = {.height = 1, .width = sides[i]};
				CHECK(taps_are_fine((enum smalti_filter)filter, sides[i], sides[o]),
				      describe(&p, filter, 1, sides[o]));
			}
}

static void bad_fits_are_refused(void)
{
	const int64_t max = SMALTI_FIT_SIDE_MAX;
	const struct {
		int64_t height, width;
		struct smalti_fit fit;
		const char *word;
	} cases[] = {
	    {0, 1, {1, 1, 0, 0, 1, 1}, "1x0 resized"},
	    {1, max + 1, {1, 1, 0, 0, 1, 1}, "2147483648x1 resized"},
	    {1, 1, {1, 0, 0, 0, 1, 0}, "0x1 and cropped"},
	    {1, 1, {INT64_MAX, 1, 0, 0, INT64_MAX, 1}, "1 to 2147483647"},
	    {1, 1, {5, 5, 1, 0, 5, 5}, "5x5+0+1"},
	    {1, 1, {5, 5, 0, 6, 5, 1}, "1x5+6+0"},
	    {1, 1, {5, 5, -1, 0, 5, 5}, "5x5+0+-1"},
	    {1, 1, {5, 5, 0, 0, 6, 1}, "1x6+0+0"},
	    {1, 1, {5, 5, INT64_MAX, 0, 1, 1}, "within them"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_resizer_open(cases[i].height, cases[i].width, &cases[i].fit,
					  SMALTI_FILTER_BICUBIC, give_rows, NULL, &error)
			  ? 0
			  : -1,
		      &error, SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
	smalti_resizer_close(NULL);
}

/* Rows that the crop leaves out are read, so damage in them is found. */
static void damage_is_passed_on(void)
{
	enum { SIDE = 40 };
	uint8_t *pixels = random_pixels(SIDE, SIDE, 3);
	const struct smalti_fit fit = {20, 20, 8, 8, 4, 4};
	for (int64_t row = 0; row < SIDE; row += 13) {
		struct image p = {.height = SIDE, .width = SIDE, .pixels = pixels, .fails_at = row};
		struct smalti_error error = SMALTI_NO_ERROR;
		uint8_t made[4 * 4 * 3];
		struct smalti_resizer *resizer =
		    smalti_resizer_open(SIDE, SIDE, &fit, SMALTI_FILTER_BILINEAR, give_rows, &p, &error);
		FAILS(smalti_resizer_rows(resizer, 0, 4, made, &error), &error, SMALTI_EFORMAT, "damage",
		      "damaged row");
		smalti_resizer_close(resizer);
	}
	free(pixels);
}

static void rows_out_of_turn_are_refused(void)
{
	static const struct {
		int64_t first, count;
	} calls[] = {{0, 1}, {2, 1}, {1, 4}, {1, -1}, {1, INT64_MAX}};
	const uint8_t pixels[4 * 3] = {0};
	const struct smalti_fit fit = smalti_fit_stretch(4, 1);
	struct image p = {.height = 4, .width = 1, .pixels = pixels, .fails_at = -1};
	struct smalti_error error = SMALTI_NO_ERROR;
	uint8_t made[4 * 3];
	struct smalti_resizer *resizer =
	    smalti_resizer_open(4, 1, &fit, SMALTI_FILTER_BICUBIC, give_rows, &p, &error);
	SUCCEEDS(smalti_resizer_rows(resizer, 0, 1, made, &error), &error, "the first");
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct smalti_error refused = SMALTI_NO_ERROR;
		FAILS(smalti_resizer_rows(resizer, calls[i].first, calls[i].count, made, &refused), &refused,
		      SMALTI_EINVAL, "a call", "begin with row 1 of 4");
	}
	SUCCEEDS(smalti_resizer_rows(resizer, 1, 3, made, &error), &error, "the others");
	smalti_resizer_close(resizer);
}

static const struct test tests[] = {
    {"results are Pillow's", results_are_pillows},
    {"passes are what the filters say", passes_are_what_the_filters_say},
    {"long images are resized", long_images_are_resized},
    {"crops are parts of the whole", crops_are_parts_of_the_whole},
    {"weights are small", weights_are_small},
    {"bad fits are refused", bad_fits_are_refused},
    {"damage is passed on", damage_is_passed_on},
    {"rows out of turn are refused", rows_out_of_turn_are_refused},
};

TEST_MAIN("resize", tests)
