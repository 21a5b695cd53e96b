/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/json.h"
#include "harness.h"
#include "images.h"
#include "jobs/input_image.h"
#include "jobs/resizer.h"
#include "png_chunk.h"
#include "sha256.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct smalti_input_options stretch_256 = {
    .fit = SMALTI_FIT_STRETCH, .image_size = 256, .stored_orientation = true};

/* All rows, some at a time, as bytes again; NULL with an error. */
static uint8_t *read_rows(struct smalti_input_image *image, int64_t band, struct smalti_error *error)
{
	const struct smalti_input_info *info = smalti_input_image_info(image);
	const int64_t values = info->width * 3;
	uint8_t *rows = malloc((size_t)(info->height * values));
	float *rgb = malloc((size_t)(band * values) * sizeof(*rgb));
	int status = 0;
	for (int64_t y = 0; y < info->height && status == 0; y += band) {
		const int64_t count = info->height - y < band ? info->height - y : band;
		status = smalti_input_image_rows(image, y, count, rgb, error);
		for (int64_t i = 0; i < count * values && status == 0; i++) {
			const float level = roundf((rgb[i] + 1.f) * 127.5f);
			CHECK(level >= 0 && level <= 255 && fabsf(level / 127.5f - 1.f - rgb[i]) < 1e-6f,
			      "not a level");
			rows[y * values + i] = (uint8_t)level;
		}
	}
	free(rgb);
	if (status == 0)
		return rows;
	free(rows);
	return NULL;
}

/* The rows of a file under tests/data. */
static uint8_t *read_image(const char *path, const struct smalti_input_options *options, int64_t band,
			   struct smalti_input_info *info, struct smalti_error *error)
{
	struct smalti_input_image *image = smalti_input_image_open(test_data(path), NULL, 0, options, error);
	uint8_t *rows = image ? read_rows(image, band, error) : NULL;
	if (image)
		*info = *smalti_input_image_info(image);
	smalti_input_image_close(image);
	return rows;
}

static void check_digest(const cJSON *expected, const char *key, const uint8_t *rows, int64_t height,
			 int64_t width, const char *what)
{
	char hex[65];
	sha256_hex(rows, (size_t)(height * width * 3), hex);
	CHECK(strcmp(hex, cJSON_GetObjectItem(expected, key)->valuestring) == 0, what);
}

static bool has_size(const cJSON *expected, const char *key, int64_t height, int64_t width)
{
	const cJSON *size = cJSON_GetObjectItem(expected, key);
	return cJSON_GetArrayItem(size, 0)->valueint == height &&
	       cJSON_GetArrayItem(size, 1)->valueint == width;
}

static void check_fit(const cJSON *expected, const char *path, enum smalti_input_fit fit, const char *key)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_input_options options = stretch_256;
	struct smalti_input_info info;
	options.fit = fit;
	uint8_t *rows = read_image(path, &options, 7, &info, &error);
	CHECK(rows, error.message);
	if (!rows)
		return;
	CHECK(has_size(expected, "decoded", info.original_height, info.original_width), path);
	CHECK(has_size(expected, "bin", info.bin.height, info.bin.width), path);
	CHECK(info.height == info.bin.height && info.width == info.bin.width, path);
	check_digest(expected, key, rows, info.height, info.width, path);
	free(rows);
}

/* Decoded and fitted as by Pillow, byte for byte. JPEG, too: its decoder is the same as Pillow's. */
static void images_are_the_references(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *all = smalti_json_read(test_data("extract/expected.json"), 1 << 20, &error);
	CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(all), 14);
	const cJSON *expected;
	cJSON_ArrayForEach (expected, all) {
		char path[256];
		int64_t width, height;
		snprintf(path, sizeof(path), "extract/InternImgs/%s",
			 cJSON_GetObjectItem(expected, "path")->valuestring);
		uint8_t *pixels = image_read_whole(test_data(path), &width, &height, &error);
		CHECK(pixels, error.message);
		CHECK(has_size(expected, "decoded", height, width), path);
		check_digest(expected, "decoded_sha256", pixels, height, width, path);
		free(pixels);
		check_fit(expected, path, SMALTI_FIT_STRETCH, "stretch_sha256");
		check_fit(expected, path, SMALTI_FIT_COVER, "cover_crop_sha256");
	}
	cJSON_Delete(all);
}

/* tests/data/images/turned-N.png is plain.png stored so that orientation N undoes it. */
static void orientation_is_undone_unless_told(void)
{
	static const enum smalti_input_fit fits[] = {SMALTI_FIT_COVER, SMALTI_FIT_STRETCH, SMALTI_FIT_CROP};
	for (size_t i = 0; i < COUNT(fits); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct smalti_input_options options = {
		    .fit = fits[i], .image_size = 256, .multiple = 8};
		struct smalti_input_info plain, turned;
		uint8_t *expected = read_image("pictures/plain.png", &options, 3, &plain, &error);
		for (int n = 2; n <= 8; n++) {
			char path[64];
			snprintf(path, sizeof(path), "pictures/turned-%d.png", n);
			uint8_t *rows = read_image(path, &options, 5, &turned, &error);
			CHECK(rows, error.message);
			CHECK(plain.width == turned.width && plain.height == turned.height &&
				  plain.original_width == turned.original_width,
			      path);
			CHECK(rows && memcmp(rows, expected, (size_t)(plain.width * plain.height * 3)) == 0,
			      path);
			free(rows);
		}
		free(expected);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_input_info info;
	free(read_image("pictures/turned-6.png", &stretch_256, 5, &info, &error));
	CU_ASSERT_TRUE(info.original_width == 32 && info.original_height == 40);
}

static int rows_of(void *user, int64_t first, int64_t count, uint8_t *rows, struct smalti_error *error)
{
	(void)error;
	memcpy(rows, (const uint8_t *)user + first * 40 * 3, (size_t)(count * 40 * 3));
	return 0;
}

static void resolutions_have_their_filters(void)
{
	static const struct {
		int64_t image_size, height, width;
		double ratio;
		enum smalti_filter filter;
	} cases[] = {{256, 224, 272, 0.82, SMALTI_FILTER_BICUBIC},
		     {512, 448, 544, 0.82, SMALTI_FILTER_BICUBIC},
		     {1024, 896, 1088, 0.82, SMALTI_FILTER_BICUBIC},
		     {2048, 1792, 2176, 0.82, SMALTI_FILTER_LANCZOS},
		     {2880, 2496, 3200, 0.78, SMALTI_FILTER_LANCZOS}};
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t height, width;
	uint8_t *pixels = image_read_whole(test_data("pictures/plain.png"), &width, &height, &error);
	CU_ASSERT_TRUE_FATAL(pixels && height == 32 && width == 40);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct smalti_input_options options = {.fit = SMALTI_FIT_STRETCH,
							     .image_size = cases[i].image_size};
		const struct smalti_fit fit = smalti_fit_stretch(cases[i].height, cases[i].width);
		const size_t bytes = (size_t)(cases[i].height * cases[i].width * 3);
		struct smalti_input_info info;
		uint8_t *rows = read_image("pictures/plain.png", &options, 64, &info, &error);
		uint8_t *expected = malloc(bytes);
		struct smalti_resizer *resizer =
		    smalti_resizer_open(32, 40, &fit, cases[i].filter, rows_of, pixels, &error);
		SUCCEEDS(smalti_resizer_rows(resizer, 0, cases[i].height, expected, &error), &error,
			 "resizer");
		CHECK(info.height == cases[i].height && info.width == cases[i].width, "size");
		CHECK(info.bin.ratio == cases[i].ratio, "ratio");
		CHECK(rows && memcmp(rows, expected, bytes) == 0, "rows");
		smalti_resizer_close(resizer);
		free(expected);
		free(rows);
	}
	free(pixels);
}

static void memory_is_read_as_files_are(void)
{
	static const char *const paths[] = {"extract/InternImgs/000.png", "extract/InternImgs/prog.jpg",
					    "extract/InternImgs/lossless.webp"};
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_input_info info;
		size_t length = 0;
		char *data = smalti_file_read(test_data(paths[i]), 1 << 20, &length, &error);
		uint8_t *expected = read_image(paths[i], &stretch_256, 8, &info, &error);
		struct smalti_input_image *image =
		    smalti_input_image_open(paths[i], data, (int64_t)length, &stretch_256, &error);
		uint8_t *rows = image ? read_rows(image, 9, &error) : NULL;
		CHECK(rows && memcmp(rows, expected, (size_t)(info.width * info.height * 3)) == 0,
		      error.message);
		smalti_input_image_close(image);
		free(rows);
		free(expected);
		/* Cut short at any place: told, not guessed. */
		for (size_t cut = 0; cut < length; cut += length / 13) {
			struct smalti_error why = SMALTI_NO_ERROR;
			image = smalti_input_image_open("a.png", data, (int64_t)cut, &stretch_256, &why);
			rows = image ? read_rows(image, 64, &why) : NULL;
			FAILS(rows ? 0 : -1, &why, SMALTI_EFORMAT, paths[i], "a.png: ");
			smalti_input_image_close(image);
			free(rows);
		}
		free(data);
	}
}

static void what_cannot_be_fitted_is_refused(void)
{
	static const struct {
		const char *path;
		struct smalti_input_options options;
		enum smalti_code code;
		const char *words[2];
	} cases[] = {
	    {"pictures/plain.png", {.image_size = 300}, SMALTI_EINVAL, {"300", NULL}},
	    {"pictures/plain.png",
	     {.image_size = 256, .limits = {.pixels = 100, .bytes = 1000}},
	     SMALTI_EUNSUPPORTED,
	     {"1 to 100 pixels", "40x32"}},
	    {"pictures/turned-6.png",
	     {.image_size = 256, .limits = {.pixels = 10000, .bytes = 1000}},
	     SMALTI_EUNSUPPORTED,
	     {"an image to be turned has to be held whole", "at most 1000"}},
	    {"pictures/one.png",
	     {.fit = SMALTI_FIT_CROP, .multiple = 8},
	     SMALTI_EUNSUPPORTED,
	     {"cannot be encoded", "1x1"}},
	    {"pictures/absent.png", {.image_size = 256}, SMALTI_ENOENT, {"absent.png", NULL}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_input_info info;
		uint8_t *rows = read_image(cases[i].path, &cases[i].options, 1, &info, &error);
		FAILS(rows ? 0 : -1, &error, cases[i].code, cases[i].path, cases[i].words[0],
		      cases[i].words[1]);
		free(rows);
	}
}

/* 2^17 pixels wide is read, one more is not; 2^28 pixels, too. */
static void sides_have_a_limit(void)
{
	static const struct {
		uint64_t width, height;
		const char *words;
	} cases[] = {
	    {1 << 17, 1, NULL}, {(1 << 17) + 1, 1, "sides of 1 to 131072"}, {50000, 50000, "50000x50000"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t png[PNG_CLAIM_BYTES];
		png_put_claim(png, cases[i].width, cases[i].height, 0);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_input_image *image =
		    smalti_input_image_open("x.png", png, sizeof(png), &stretch_256, &error);
		if (cases[i].words)
			FAILS(image ? 0 : -1, &error, SMALTI_EUNSUPPORTED, cases[i].words, cases[i].words);
		else
			SUCCEEDS(image ? 0 : -1, &error, "as wide as allowed");
		smalti_input_image_close(image);
	}
}

static const struct test tests[] = {
    {"images are the reference's", images_are_the_references},
    {"orientation is undone unless told", orientation_is_undone_unless_told},
    {"resolutions have their filters", resolutions_have_their_filters},
    {"memory is read as files are", memory_is_read_as_files_are},
    {"what cannot be fitted is refused", what_cannot_be_fitted_is_refused},
    {"sides have a limit", sides_have_a_limit},
};
TEST_MAIN("input image", tests)
