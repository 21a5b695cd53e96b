/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"
#include "image/image_writer.h"
#include "image/png_reader.h"
#include "images.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int files_beside(const char *path)
{
	char directory[512];
	snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
	DIR *dir = opendir(directory);
	int count = -2; /* . and .. */
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Writes an image in bands of `band` rows and commits it. */
static int write_image(const char *path, const struct smalti_image_format *format, const void *pixels,
		       int64_t band, struct smalti_error *error)
{
	struct smalti_image_writer *writer = smalti_image_create(path, format, error);
	if (!writer)
		return -1;
	size_t row = (size_t)format->width * 3 * (size_t)(format->depth / 8);
	int status = 0;
	for (int64_t y = 0; y < format->height && !status; y += band) {
		int64_t count = y + band < format->height ? band : format->height - y;
		status =
		    smalti_image_write_rows(writer, y, count, (const char *)pixels + (size_t)y * row, error);
	}
	if (!status)
		status = smalti_image_finish(writer, error);
	if (!status)
		return smalti_image_commit(writer, error);
	smalti_image_abort(writer);
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
static void images_survive_in_any_bands(void)
{
	int64_t theirs = 0, ours = 0;
	for (size_t i = 0; i < COUNT(golden); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t width, height, width2, height2;
		uint8_t *pixels = image_read_whole(test_data(golden[i]), &width, &height, &error);
		CHECK(pixels, error.message);
		const char *path = test_file("a.png");
		struct smalti_image_format format = {.width = width, .height = height, .depth = 8};
		SUCCEEDS(write_image(path, &format, pixels, 1 + (int64_t)i * 7, &error), &error, golden[i]);
		uint8_t *again = image_read_whole(path, &width2, &height2, &error);
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

static void the_smallest_image_has_one_pixel(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("one.png");
	static const uint8_t pixel[3] = {1, 128, 255};
	struct smalti_image_format format = {.width = 1, .height = 1, .depth = 8};
	SUCCEEDS(write_image(path, &format, pixel, 1, &error), &error, "write");
	int64_t width, height;
	uint8_t *pixels = image_read_whole(path, &width, &height, &error);
	CHECK(pixels && width == 1 && height == 1 && memcmp(pixels, pixel, 3) == 0, error.message);
	free(pixels);
}

static void sixteen_bits_keep_their_value(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("deep.png");
	static const uint16_t pixels[6] = {0, 257, 0x80 * 257, 65535, 129, 128};
	struct smalti_image_format format = {.width = 2, .height = 1, .depth = 16};
	SUCCEEDS(write_image(path, &format, pixels, 1, &error), &error, "write");
	int64_t width, height;
	uint8_t *read = image_read_whole(path, &width, &height, &error);
	static const uint8_t expected[6] = {0, 1, 0x80, 255, 0, 0};
	CHECK(read && memcmp(read, expected, 6) == 0, error.message);
	free(read);
}

static const struct smalti_image_text texts[] = {
    {"prompt", "a \"star\"\non two lines"},
    {"negative_prompt", "d\xc3\xa9j\xc3\xa0 vu \xf0\x9f\x8c\x9f"},
    {"seed", "18446744073709551615"},
    {"empty", ""},
};

static void texts_are_found_again(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("text.png");
	static const uint8_t pixel[3];
	struct smalti_image_format format = {SMALTI_IMAGE_PNG, 1, 1, 8, texts, COUNT(texts)};
	SUCCEEDS(write_image(path, &format, pixel, 1, &error), &error, "write");
	char *value;
	for (size_t i = 0; i < COUNT(texts); i++) {
		SUCCEEDS(smalti_png_read_text(path, texts[i].key, &value, &error), &error, texts[i].key);
		CHECK(value && strcmp(value, texts[i].value) == 0, texts[i].key);
		free(value);
	}
	SUCCEEDS(smalti_png_read_text(path, "absent", &value, &error), &error, "absent");
	CU_ASSERT_PTR_NULL(value);
}

static void the_same_image_is_the_same_bytes(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *directory = test_scratch();
	char *bytes[2];
	size_t lengths[2];
	uint8_t pixels[37 * 11 * 3];
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * i >> 3);
	for (int i = 0; i < 2; i++) {
		char path[512];
		snprintf(path, sizeof(path), "%s/%d.png", directory, i);
		struct smalti_image_format format = {SMALTI_IMAGE_PNG, 37, 11, 8, texts, COUNT(texts)};
		SUCCEEDS(write_image(path, &format, pixels, i ? 3 : 11, &error), &error, "write");
		bytes[i] = smalti_file_read(path, 1 << 20, &lengths[i], &error);
		CHECK(bytes[i] && !memmem(bytes[i], lengths[i], "tIME", 4), "no time");
	}
	CU_ASSERT_TRUE(lengths[0] == lengths[1] && memcmp(bytes[0], bytes[1], lengths[0]) == 0);
	free(bytes[0]);
	free(bytes[1]);
}

static void formats_are_checked(void)
{
	static const struct smalti_image_text bad_key = {" prompt", "x"}, empty_key = {"", "x"},
					      accent_key = {"cl\xc3\xa9", "x"},
					      bad_value = {"prompt", "\xff"};
	static const struct {
		struct smalti_image_format format;
		const char *word;
	} cases[] = {
	    {{.width = 0, .height = 1, .depth = 8}, "0x1"},
	    {{.width = 1, .height = INT64_C(1) << 31, .depth = 8}, "1x2147483648"},
	    {{.width = 1, .height = -1, .depth = 8}, "1x-1"},
	    {{.width = 1, .height = 1, .depth = 4}, "not 4"},
	    {{SMALTI_IMAGE_PNG, 1, 1, 8, &bad_key, 1}, "' prompt'"},
	    {{SMALTI_IMAGE_PNG, 1, 1, 8, &empty_key, 1}, "''"},
	    {{SMALTI_IMAGE_PNG, 1, 1, 8, &accent_key, 1}, "metadata key"},
	    {{SMALTI_IMAGE_PNG, 1, 1, 8, &bad_value, 1}, "UTF-8"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = test_file("bad.png");
		int status = smalti_image_create(path, &cases[i].format, &error) ? 0 : -1;
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
		const char *path = test_file("rows.png");
		struct smalti_image_format format = {.width = 2, .height = 3, .depth = 8};
		struct smalti_image_writer *writer = smalti_image_create(path, &format, &error);
		FAILS(smalti_image_write_rows(writer, cases[i].first, cases[i].count, rows, &error), &error,
		      SMALTI_EINVAL, "order", "rows.png", "row 0 was expected");
		smalti_image_abort(writer);
		CU_ASSERT_EQUAL(files_beside(path), 0);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("rows.png");
	struct smalti_image_format format = {.width = 2, .height = 3, .depth = 8};
	struct smalti_image_writer *writer = smalti_image_create(path, &format, &error);
	SUCCEEDS(smalti_image_write_rows(writer, 0, 2, rows, &error), &error, "two rows");
	FAILS(smalti_image_finish(writer, &error), &error, SMALTI_EINVAL, "unfinished", "2 of 3 rows");
	struct smalti_error commit = SMALTI_NO_ERROR;
	FAILS(smalti_image_commit(writer, &commit), &commit, SMALTI_EINVAL, "unfinished", "not finished");
	CU_ASSERT_EQUAL(files_beside(path), 0);
}

static const enum smalti_image_encoding encodings[] = {SMALTI_IMAGE_PNG, SMALTI_IMAGE_PPM};

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
	for (size_t i = 0; i < COUNT(encodings); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = test_file("full");
		struct smalti_image_format format = {encodings[i], SIDE, SIDE, 8, NULL, 0};
		setrlimit(RLIMIT_FSIZE, &small);
		int status = write_image(path, &format, noise, 5, &error);
		setrlimit(RLIMIT_FSIZE, &old);
		FAILS(status, &error, SMALTI_EIO, "full", "full: ", "cannot be written", "File too large");
		CU_ASSERT_EQUAL(files_beside(path), 0);
	}
	free(noise);
}

/* Cut anywhere or changed anywhere, a file is refused or read, never more. */
static void damaged_files_are_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("whole.png");
	uint8_t pixels[9 * 5 * 3];
	memset(pixels, 77, sizeof(pixels));
	struct smalti_image_format format = {SMALTI_IMAGE_PNG, 9, 5, 8, texts, COUNT(texts)};
	SUCCEEDS(write_image(path, &format, pixels, 5, &error), &error, "write");
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
			uint8_t *read = image_read_whole(path, &width, &height, &why);
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

static void texts_of_other_files_are_refused(void)
{
	struct smalti_error absent = SMALTI_NO_ERROR;
	char *value;
	FAILS(smalti_png_read_text("/nonexistent.png", "prompt", &value, &absent), &absent, SMALTI_ENOENT,
	      "absent", "/nonexistent.png");
	struct smalti_error directory = SMALTI_NO_ERROR;
	FAILS(smalti_png_read_text("/", "prompt", &value, &directory), &directory, SMALTI_EFORMAT, "folder",
	      "is a directory");
	struct smalti_error json = SMALTI_NO_ERROR;
	FAILS(smalti_png_read_text(test_data("golden/tokenizer.json"), "prompt", &value, &json), &json,
	      SMALTI_EFORMAT, "json", "tokenizer.json", "PNG");
}

/* What a PPM is, byte for byte, whatever the bands. */
static void a_ppm_is_a_header_and_samples(void)
{
	static const uint8_t bytes[12] = {0, 1, 2, 253, 254, 255, 10, 13, 26, 127, 128, 129};
	static const uint16_t words[6] = {0, 1, 256, 0x1234, 0xff00, 65535};
	static const struct {
		struct smalti_image_format format;
		const void *pixels;
		int64_t band;
		const char *expected;
		size_t length;
	} cases[] = {
	    {{SMALTI_IMAGE_PPM, 2, 2, 8, NULL, 0},
	     bytes,
	     2,
	     "P6\n2 2\n255\n\0\1\2\375\376\377\12\15\32\177\200\201",
	     23},
	    {{SMALTI_IMAGE_PPM, 1, 4, 8, texts, COUNT(texts)},
	     bytes,
	     3,
	     "P6\n1 4\n255\n\0\1\2\375\376\377\12\15\32\177\200\201",
	     23},
	    {{SMALTI_IMAGE_PPM, 1, 2, 16, NULL, 0},
	     words,
	     1,
	     "P6\n1 2\n65535\n\0\0\0\1\1\0\x12\x34\xff\0\xff\xff",
	     25},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = test_file("a.ppm");
		SUCCEEDS(write_image(path, &cases[i].format, cases[i].pixels, cases[i].band, &error), &error,
			 "write");
		size_t length = 0;
		char *found = smalti_file_read(path, 100, &length, &error);
		CHECK(found && length == cases[i].length && memcmp(found, cases[i].expected, length) == 0,
		      "bytes");
		CU_ASSERT_EQUAL(files_beside(path), 1);
		free(found);
	}
}

/* A row of 16 bits that is longer than what is converted at a time. */
static void a_long_deep_row_is_whole(void)
{
	enum { WIDTH = 1031 };
	static uint16_t row[WIDTH * 3];
	for (int i = 0; i < WIDTH * 3; i++)
		row[i] = (uint16_t)(i * 21);
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("long.ppm");
	const struct smalti_image_format format = {SMALTI_IMAGE_PPM, WIDTH, 1, 16, NULL, 0};
	SUCCEEDS(write_image(path, &format, row, 1, &error), &error, "write");
	size_t length = 0;
	char *found = smalti_file_read(path, 1 << 16, &length, &error);
	enum { HEADER = 16 };
	CU_ASSERT_EQUAL_FATAL(length, HEADER + WIDTH * 6);
	for (int i = 0; i < WIDTH * 3; i++) {
		const uint8_t *at = (uint8_t *)found + HEADER + 2 * i;
		CHECK((at[0] << 8 | at[1]) == row[i], "sample");
	}
	free(found);
}

/* "-" writes to the standard output and leaves no file. */
static void the_standard_output_takes_a_image(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("stdout.png");
	fflush(stdout);
	int terminal = dup(STDOUT_FILENO);
	FILE *file = fopen(path, "w");
	dup2(fileno(file), STDOUT_FILENO);
	static const uint8_t pixel[3] = {9, 8, 7};
	struct smalti_image_format format = {.width = 1, .height = 1, .depth = 8};
	int status = write_image("-", &format, pixel, 1, &error);
	dup2(terminal, STDOUT_FILENO);
	close(terminal);
	fclose(file);
	SUCCEEDS(status, &error, "write");
	int64_t width, height;
	uint8_t *read = image_read_whole(path, &width, &height, &error);
	CHECK(read && memcmp(read, pixel, 3) == 0, error.message);
	free(read);
}

/* Nobody reads what is written to the standard output. */
static void a_closed_pipe_is_reported(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < COUNT(encodings); i++) {
		int ends[2];
		fflush(stdout);
		int terminal = dup(STDOUT_FILENO);
		CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[1]);
		close(ends[0]);
		static const uint8_t pixel[3] = {9, 8, 7};
		struct smalti_image_format format = {encodings[i], 1, 1, 8, NULL, 0};
		struct smalti_error error = SMALTI_NO_ERROR;
		int status = write_image("-", &format, pixel, 1, &error);
		dup2(terminal, STDOUT_FILENO);
		close(terminal);
		__fpurge(stdout);
		clearerr(stdout);
		FAILS(status, &error, SMALTI_EIO, "pipe", "standard output", "Broken pipe");
	}
}

static const struct test tests[] = {
    {"images survive in any bands", images_survive_in_any_bands},
    {"the smallest image has one pixel", the_smallest_image_has_one_pixel},
    {"sixteen bits keep their value", sixteen_bits_keep_their_value},
    {"texts are found again", texts_are_found_again},
    {"the same image is the same bytes", the_same_image_is_the_same_bytes},
    {"formats are checked", formats_are_checked},
    {"rows come in order and all", rows_come_in_order_and_all},
    {"a full disk is reported", a_full_disk_is_reported},
    {"damaged files are refused", damaged_files_are_refused},
    {"texts of other files are refused", texts_of_other_files_are_refused},
    {"a PPM is a header and samples", a_ppm_is_a_header_and_samples},
    {"a long deep row is whole", a_long_deep_row_is_whole},
    {"a closed pipe is reported", a_closed_pipe_is_reported},
    {"the standard output takes an image", the_standard_output_takes_a_image},
};

TEST_MAIN("image writer", tests)
