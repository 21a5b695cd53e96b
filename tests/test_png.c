/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"
#include "io/png.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *in_scratch(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", test_scratch(), name);
	return path;
}

static int files_beside(const char *path)
{
	char folder[512];
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	DIR *dir = opendir(folder);
	int count = -2; /* . and .. */
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Writes a picture in bands of `band` rows and commits it. */
static int write_picture(const char *path, const struct smalti_png_format *format, const void *pixels,
			 int64_t band, struct smalti_error *error)
{
	struct smalti_png *png = smalti_png_create(path, format, error);
	if (!png)
		return -1;
	size_t row = (size_t)format->width * 3 * (size_t)(format->depth / 8);
	int status = 0;
	for (int64_t y = 0; y < format->height && !status; y += band) {
		int64_t count = y + band < format->height ? band : format->height - y;
		status = smalti_png_write_rows(png, y, count, (const char *)pixels + (size_t)y * row, error);
	}
	if (!status)
		status = smalti_png_finish(png, error);
	if (!status)
		return smalti_png_commit(png, error);
	smalti_png_abort(png);
	return status;
}

static const char *const golden[] = {"golden/generate/00.png", "golden/generate/02.png",
				     "golden/generate/09.png", "golden/generate/10.png"};

static int64_t file_size(const char *path)
{
	struct stat info;
	return stat(path, &info) ? -1 : (int64_t)info.st_size;
}

/* What is read back is what was written, whatever the bands, and no larger than what others write. */
static void pictures_survive_in_any_bands(void)
{
	int64_t theirs = 0, ours = 0;
	for (size_t i = 0; i < COUNT(golden); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t width, height, width2, height2;
		uint8_t *pixels =
		    smalti_png_read_rgb8(test_data(golden[i]), 1 << 20, &width, &height, &error);
		CHECK(pixels, error.message);
		const char *path = in_scratch("a.png");
		struct smalti_png_format format = {.width = width, .height = height, .depth = 8};
		SUCCEEDS(write_picture(path, &format, pixels, 1 + (int64_t)i * 7, &error), &error, golden[i]);
		uint8_t *again = smalti_png_read_rgb8(path, width * height, &width2, &height2, &error);
		CHECK(again && width2 == width && height2 == height, error.message);
		CHECK(again && memcmp(pixels, again, (size_t)(width * height * 3)) == 0, golden[i]);
		CU_ASSERT_EQUAL(files_beside(path), 1);
		theirs += file_size(test_data(golden[i]));
		ours += file_size(path);
		free(pixels);
		free(again);
	}
	CU_ASSERT_TRUE(ours > 0 && ours * 100 < theirs * 105);
}

static void the_smallest_picture_has_one_pixel(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("one.png");
	static const uint8_t pixel[3] = {1, 128, 255};
	struct smalti_png_format format = {.width = 1, .height = 1, .depth = 8};
	SUCCEEDS(write_picture(path, &format, pixel, 1, &error), &error, "write");
	int64_t width, height;
	uint8_t *pixels = smalti_png_read_rgb8(path, 1, &width, &height, &error);
	CHECK(pixels && width == 1 && height == 1 && memcmp(pixels, pixel, 3) == 0, error.message);
	free(pixels);
}

static void sixteen_bits_keep_their_value(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("deep.png");
	static const uint16_t pixels[6] = {0, 257, 0x80 * 257, 65535, 129, 128};
	struct smalti_png_format format = {.width = 2, .height = 1, .depth = 16};
	SUCCEEDS(write_picture(path, &format, pixels, 1, &error), &error, "write");
	int64_t width, height;
	uint8_t *read = smalti_png_read_rgb8(path, 2, &width, &height, &error);
	static const uint8_t expected[6] = {0, 1, 0x80, 255, 1, 0};
	CHECK(read && memcmp(read, expected, 6) == 0, error.message);
	free(read);
}

static const struct smalti_png_text texts[] = {
    {"prompt", "a \"star\"\non two lines"},
    {"negative_prompt", "d\xc3\xa9j\xc3\xa0 vu \xf0\x9f\x8c\x9f"},
    {"seed", "18446744073709551615"},
    {"empty", ""},
};

static void texts_are_found_again(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("text.png");
	static const uint8_t pixel[3];
	struct smalti_png_format format = {1, 1, 8, texts, COUNT(texts)};
	SUCCEEDS(write_picture(path, &format, pixel, 1, &error), &error, "write");
	char *value;
	for (size_t i = 0; i < COUNT(texts); i++) {
		SUCCEEDS(smalti_png_read_text(path, texts[i].key, &value, &error), &error, texts[i].key);
		CHECK(value && strcmp(value, texts[i].value) == 0, texts[i].key);
		free(value);
	}
	SUCCEEDS(smalti_png_read_text(path, "absent", &value, &error), &error, "absent");
	CU_ASSERT_PTR_NULL(value);
}

static void the_same_picture_is_the_same_bytes(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *folder = test_scratch();
	char *bytes[2];
	size_t lengths[2];
	uint8_t pixels[37 * 11 * 3];
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * i >> 3);
	for (int i = 0; i < 2; i++) {
		char path[512];
		snprintf(path, sizeof(path), "%s/%d.png", folder, i);
		struct smalti_png_format format = {37, 11, 8, texts, COUNT(texts)};
		SUCCEEDS(write_picture(path, &format, pixels, i ? 3 : 11, &error), &error, "write");
		bytes[i] = smalti_file_read(path, 1 << 20, &lengths[i], &error);
		CHECK(bytes[i] && !memmem(bytes[i], lengths[i], "tIME", 4), "no time");
	}
	CU_ASSERT_TRUE(lengths[0] == lengths[1] && memcmp(bytes[0], bytes[1], lengths[0]) == 0);
	free(bytes[0]);
	free(bytes[1]);
}

static void formats_are_checked(void)
{
	static const struct smalti_png_text bad_key = {" prompt", "x"}, empty_key = {"", "x"},
					    accent_key = {"cl\xc3\xa9", "x"}, bad_value = {"prompt", "\xff"};
	static const struct {
		struct smalti_png_format format;
		const char *word;
	} cases[] = {
	    {{.width = 0, .height = 1, .depth = 8}, "0x1"},
	    {{.width = 1, .height = INT64_C(1) << 31, .depth = 8}, "1x2147483648"},
	    {{.width = 1, .height = -1, .depth = 8}, "1x-1"},
	    {{.width = 1, .height = 1, .depth = 4}, "not 4"},
	    {{1, 1, 8, &bad_key, 1}, "' prompt'"},
	    {{1, 1, 8, &empty_key, 1}, "''"},
	    {{1, 1, 8, &accent_key, 1}, "metadata key"},
	    {{1, 1, 8, &bad_value, 1}, "UTF-8"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = in_scratch("bad.png");
		int status = smalti_png_create(path, &cases[i].format, &error) ? 0 : -1;
		FAILS(status, &error, SMALTI_EINVAL, cases[i].word, "bad.png", cases[i].word);
		CU_ASSERT_EQUAL(files_beside(path), 0);
	}
}

static void rows_come_in_order_and_all(void)
{
	static const uint8_t rows[3 * 2 * 3];
	static const struct {
		int64_t first, count;
	} cases[] = {{1, 1}, {0, 4}, {0, -1}, {-1, 1}, {0, INT64_MAX}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = in_scratch("rows.png");
		struct smalti_png_format format = {.width = 2, .height = 3, .depth = 8};
		struct smalti_png *png = smalti_png_create(path, &format, &error);
		FAILS(smalti_png_write_rows(png, cases[i].first, cases[i].count, rows, &error), &error,
		      SMALTI_EINVAL, "order", "rows.png", "row 0 was expected");
		smalti_png_abort(png);
		CU_ASSERT_EQUAL(files_beside(path), 0);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("rows.png");
	struct smalti_png_format format = {.width = 2, .height = 3, .depth = 8};
	struct smalti_png *png = smalti_png_create(path, &format, &error);
	SUCCEEDS(smalti_png_write_rows(png, 0, 2, rows, &error), &error, "two rows");
	FAILS(smalti_png_finish(png, &error), &error, SMALTI_EINVAL, "unfinished", "2 of 3 rows");
	struct smalti_error commit = SMALTI_NO_ERROR;
	FAILS(smalti_png_commit(png, &commit), &commit, SMALTI_EINVAL, "unfinished", "not finished");
	CU_ASSERT_EQUAL(files_beside(path), 0);
}

/* A file size limit fails writes as a full disk does. */
static void a_full_disk_is_reported(void)
{
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 100000;
	signal(SIGXFSZ, SIG_IGN);
	enum { SIDE = 512 };
	uint8_t *noise = malloc(SIDE * SIDE * 3);
	uint32_t state = 1;
	for (int i = 0; i < SIDE * SIDE * 3; i++)
		noise[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("full.png");
	struct smalti_png_format format = {.width = SIDE, .height = SIDE, .depth = 8};
	setrlimit(RLIMIT_FSIZE, &small);
	int status = write_picture(path, &format, noise, 5, &error);
	setrlimit(RLIMIT_FSIZE, &old);
	FAILS(status, &error, SMALTI_EIO, "full", "full.png", "cannot be written", "File too large");
	CU_ASSERT_EQUAL(files_beside(path), 0);
	free(noise);
}

/* Cut anywhere or changed anywhere, a file is refused or read, never more. */
static void damaged_files_are_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("whole.png");
	uint8_t pixels[9 * 5 * 3];
	memset(pixels, 77, sizeof(pixels));
	struct smalti_png_format format = {9, 5, 8, texts, COUNT(texts)};
	SUCCEEDS(write_picture(path, &format, pixels, 5, &error), &error, "write");
	size_t length;
	char *bytes = smalti_file_read(path, 1 << 20, &length, &error);
	for (size_t i = 0; i < length; i++)
		for (int cut = 0; cut < 2; cut++) {
			FILE *file = fopen(path, "w");
			bytes[i] ^= 0x20;
			fwrite(bytes, 1, cut ? i : length, file);
			bytes[i] ^= 0x20;
			fclose(file);
			struct smalti_error why = SMALTI_NO_ERROR;
			int64_t width, height;
			uint8_t *read = smalti_png_read_rgb8(path, 1000, &width, &height, &why);
			CHECK(!read || (!cut && memcmp(read, pixels, sizeof(pixels)) == 0), "damage");
			CHECK(read || (why.code != SMALTI_OK && strstr(why.message, "whole.png")),
			      why.message);
			free(read);
			char *value;
			struct smalti_error text = SMALTI_NO_ERROR;
			int status = smalti_png_read_text(path, "prompt", &value, &text);
			CHECK((status == 0) == (text.code == SMALTI_OK), text.message);
			free(value);
		}
	free(bytes);
}

static void other_files_are_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t width, height;
	FAILS(
	    smalti_png_read_rgb8(test_data("golden/generate/00.png"), 128 * 128 - 1, &width, &height, &error)
		? 0
		: -1,
	    &error, SMALTI_EINVAL, "limit", "00.png", "16383", "128x128");
	struct smalti_error absent = SMALTI_NO_ERROR;
	char *value;
	FAILS(smalti_png_read_text("/nonexistent.png", "prompt", &value, &absent), &absent, SMALTI_EIO,
	      "absent", "/nonexistent.png");
	struct smalti_error folder = SMALTI_NO_ERROR;
	FAILS(smalti_png_read_text("/", "prompt", &value, &folder), &folder, SMALTI_EIO, "folder",
	      "directory");
	struct smalti_error json = SMALTI_NO_ERROR;
	FAILS(smalti_png_read_text(test_data("golden/tokenizer.json"), "prompt", &value, &json), &json,
	      SMALTI_EFORMAT, "json", "tokenizer.json", "PNG");
}

/* "-" writes to the standard output and leaves no file. */
static void the_standard_output_takes_a_picture(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = in_scratch("stdout.png");
	fflush(stdout);
	int terminal = dup(STDOUT_FILENO);
	FILE *file = fopen(path, "w");
	dup2(fileno(file), STDOUT_FILENO);
	static const uint8_t pixel[3] = {9, 8, 7};
	struct smalti_png_format format = {.width = 1, .height = 1, .depth = 8};
	int status = write_picture("-", &format, pixel, 1, &error);
	dup2(terminal, STDOUT_FILENO);
	close(terminal);
	fclose(file);
	SUCCEEDS(status, &error, "write");
	int64_t width, height;
	uint8_t *read = smalti_png_read_rgb8(path, 1, &width, &height, &error);
	CHECK(read && memcmp(read, pixel, 3) == 0, error.message);
	free(read);
}

static const struct test tests[] = {
    {"pictures survive in any bands", pictures_survive_in_any_bands},
    {"the smallest picture has one pixel", the_smallest_picture_has_one_pixel},
    {"sixteen bits keep their value", sixteen_bits_keep_their_value},
    {"texts are found again", texts_are_found_again},
    {"the same picture is the same bytes", the_same_picture_is_the_same_bytes},
    {"formats are checked", formats_are_checked},
    {"rows come in order and all", rows_come_in_order_and_all},
    {"a full disk is reported", a_full_disk_is_reported},
    {"damaged files are refused", damaged_files_are_refused},
    {"other files are refused", other_files_are_refused},
    {"the standard output takes a picture", the_standard_output_takes_a_picture},
};

TEST_MAIN("png", tests)
