/* SPDX-License-Identifier: Apache-2.0
 *
 * Images that are cut short, changed, made to do harm, or none at all. */
#include "base/file.h"
#include "harness.h"
#include "image/image_writer.h"
#include "image/png_reader.h"
#include "images.h"
#include "png_chunk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* One of each way through the decoders. */
static const char *const samples[] = {
    "rgb-420.jpg",  "restart.jpg", "progressive.jpg",       "cmyk.jpg",      "rgb8.png",
    "palette4.png", "grey16.png",  "interlaced-grey16.png", "gamma.png",     "interlaced-rgb8.png",
    "rgba8.png",    "lossy.webp",  "lossy-alpha.webp",      "lossless.webp",
};

/* Where a file of `count` bytes ends too early, it is refused, and the message says where. */
static void files_cut_short_are_refused(void)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		size_t length;
		char *bytes = smalti_file_read(image_data(samples[i]), 1 << 20, &length, &error);
		const char *path = test_write("cut", bytes, length);
		for (size_t cut = length; cut-- > 0;) {
			struct smalti_error why = SMALTI_NO_ERROR;
			struct smalti_image_info info;
			if (truncate(path, (off_t)cut))
				abort();
			uint8_t *pixels = image_read(path, &images_roomy, 4, &info, &why);
			FAILS(pixels ? 0 : -1, &why, SMALTI_EFORMAT, samples[i], "cut: ");
			const bool place = strstr(why.message, "at row") || strstr(why.message, "header");
			CHECK(place || cut < 12, why.message);
			free(pixels);
		}
		free(bytes);
	}
}

/* Half of the rows are there, so about the middle is named. */
static void the_row_where_a_file_ends_is_named(void)
{
	enum { WIDTH = 64, HEIGHT = 1000 };
	uint8_t *noise = malloc(WIDTH * HEIGHT * 3);
	uint64_t state = 5;
	for (int i = 0; i < WIDTH * HEIGHT * 3; i++)
		noise[i] = (uint8_t)(127 * test_random(&state) + 128);
	struct smalti_error error = SMALTI_NO_ERROR, why = SMALTI_NO_ERROR;
	const char *path = test_file("tall.png");
	const struct smalti_image_format format = {.width = WIDTH, .height = HEIGHT, .depth = 8};
	struct smalti_image_writer *writer = smalti_image_create(path, &format, &error);
	smalti_image_write_rows(writer, 0, HEIGHT, noise, &error);
	smalti_image_finish(writer, &error);
	SUCCEEDS(smalti_image_commit(writer, &error), &error, "write");
	free(noise);
	size_t length;
	free(smalti_file_read(path, 1 << 20, &length, &error));
	CU_ASSERT_EQUAL_FATAL(truncate(path, (off_t)(length / 2)), 0);
	struct smalti_image_info info;
	CU_ASSERT_PTR_NULL(image_read(path, &images_roomy, 10, &info, &why));
	const char *at = strstr(why.message, "at row ");
	const int row = at ? atoi(at + 7) : -1;
	CHECK(row > 400 && row < 600 && strstr(why.message, "of 1000"), why.message);
}

/* Changed anywhere, a file is refused or read, never more. */
static void damaged_files_do_no_harm(void)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		size_t length;
		char *bytes = smalti_file_read(image_data(samples[i]), 1 << 20, &length, &error);
		for (size_t at = 0; at < length; at++) {
			struct smalti_error why = SMALTI_NO_ERROR;
			struct smalti_image_info info;
			bytes[at] ^= (char)(1 << at % 8);
			uint8_t *pixels =
			    image_read(test_write("changed", bytes, length), &images_roomy, 4, &info, &why);
			bytes[at] ^= (char)(1 << at % 8);
			CHECK(!pixels == (why.code != SMALTI_OK), why.message);
			free(pixels);
		}
		free(bytes);
	}
}

static void other_files_are_refused(void)
{
	static const struct {
		const char *bytes;
		size_t length;
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {BYTES(""), SMALTI_EFORMAT, "file is empty"},
	    {BYTES("\xff"), SMALTI_EFORMAT, "is none of them"},
	    {BYTES("a text, as it were\n"), SMALTI_EFORMAT, "is none of them"},
	    {BYTES("GIF89a......"), SMALTI_EUNSUPPORTED, "a GIF file cannot be read; convert it"},
	    {BYTES("\0\0\0\x1c"
		   "ftypavif...."),
	     SMALTI_EUNSUPPORTED, "AVIF"},
	    {BYTES("P6\n1 1\n255\nabc"), SMALTI_EUNSUPPORTED, "PPM"},
	    {BYTES("\xff\xd8\xff\xd9"), SMALTI_EFORMAT, "in its header"},
	    /* no height; 12 bits; two components; too wide; lossless */
	    {BYTES("\xff\xd8\xff\xc0\0\x0b\x08\0\0\0\1\1\1\x11\0"), SMALTI_EFORMAT, "Empty JPEG"},
	    {BYTES("\xff\xd8\xff\xc1\0\x0b\x0c\0\1\0\1\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0"),
	     SMALTI_EUNSUPPORTED, "precision"},
	    {BYTES("\xff\xd8\xff\xc0\0\x0e\x08\0\1\0\1\2\1\x11\0\2\x11\0\xff\xda\0\x0a\2\1\0\2\0\0\x3f\0"),
	     SMALTI_EUNSUPPORTED, "this has 2"},
	    {BYTES("\xff\xd8\xff\xc0\0\x0b\x08\0\1\xff\xff\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0"),
	     SMALTI_EUNSUPPORTED, "65500"},
	    {BYTES("\xff\xd8\xff\xc3\0\x0b\x08\0\1\0\1\1\1\x11\0"), SMALTI_EUNSUPPORTED, "SOF"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_image_info info;
		const char *path = test_write("other", cases[i].bytes, cases[i].length);
		CU_ASSERT_PTR_NULL(image_read(path, &images_roomy, 1, &info, &error));
		FAILS(-1, &error, cases[i].code, cases[i].word, "other: ", cases[i].word);
	}
	static const struct {
		const char *path, *word;
		enum smalti_code code;
	} files[] = {
	    {"/nonexistent.png", "cannot be opened", SMALTI_ENOENT},
	    {"/", "is a directory", SMALTI_EFORMAT},
	    {"/dev/null", "is a device", SMALTI_EFORMAT},
	};
	for (size_t i = 0; i < COUNT(files); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		CU_ASSERT_PTR_NULL(smalti_image_open(files[i].path, &images_roomy, &error));
		FAILS(-1, &error, files[i].code, files[i].path, files[i].path, files[i].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_image_open(image_data("animated.webp"), &images_roomy, &error));
	FAILS(-1, &error, SMALTI_EUNSUPPORTED, "animated", "animated.webp", "is animated");
}

enum { FILE_BYTES = 1 << 20, IHDR_END = PNG_HEADER_BYTES };

static void claims_are_checked_before_memory_is_taken(void)
{
	static const struct {
		uint64_t width, height;
		int interlace;
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {0, 1, 0, SMALTI_EFORMAT, "Invalid IHDR"},
	    {1, 0, 0, SMALTI_EFORMAT, "Invalid IHDR"},
	    {0x80000000, 1, 0, SMALTI_EFORMAT, "in its header"},
	    {0x7fffffff, 0x7fffffff, 0, SMALTI_EUNSUPPORTED, "found 2147483647x2147483647"},
	    {0x7fffffff, 1, 0, SMALTI_EUNSUPPORTED, "found 2147483647x1"},
	    {1024, 1024, 0, SMALTI_EFORMAT, "at row 0 of 1024"},
	    {1024, 1024, 1, SMALTI_EFORMAT, "at row 0 of 1024"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_image_info info;
		const char *path = image_claim(cases[i].width, cases[i].height, cases[i].interlace);
		CU_ASSERT_PTR_NULL(image_read(path, &images_roomy, 1, &info, &error));
		FAILS(-1, &error, cases[i].code, cases[i].word, "claim: ", cases[i].word);
	}
}

/* A chunk behind the header of a good PNG: those that are not used are not inflated, whatever is in them,
 * and a text that is too large is none. */
static void bombs_do_not_go_off(void)
{
	enum { INFLATED = 50 << 20 };
	uint8_t *zeros = calloc(1, INFLATED), *packed = malloc(FILE_BYTES), *file = malloc(2 * FILE_BYTES);
	uLongf length = FILE_BYTES - 32;
	CU_ASSERT_EQUAL_FATAL(compress2(packed + 32, &length, zeros, INFLATED, 9), Z_OK);
	free(zeros);
	static const struct {
		const char *name, *start;
		size_t bytes;
	} cases[] = {{"iCCP", "a\0\0", 3}, {"zTXt", "a\0\0", 3}, {"iTXt", "a\0\1\0\0\0", 6}, {"prIv", "", 0}};
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t size;
	char *good = smalti_file_read(image_data("rgb8.png"), FILE_BYTES, &size, &error);
	for (size_t i = 0; i < COUNT(cases); i++) {
		memcpy(packed + 32 - cases[i].bytes, cases[i].start, cases[i].bytes);
		memcpy(file, good, IHDR_END);
		const size_t end =
		    IHDR_END + png_put_chunk(file + IHDR_END, cases[i].name, packed + 32 - cases[i].bytes,
					     length + cases[i].bytes);
		memcpy(file + end, good + IHDR_END, size - IHDR_END);
		struct smalti_image_info info;
		const char *path = test_write("bomb", file, end + size - IHDR_END);
		uint8_t *pixels = image_read(path, &images_roomy, 1, &info, &error);
		SUCCEEDS(pixels ? 0 : -1, &error, cases[i].name);
		free(pixels);
		struct smalti_error ignored = SMALTI_NO_ERROR;
		char *value;
		smalti_png_read_text(path, "a", &value, &ignored);
		CHECK(!value, cases[i].name);
		free(value);
	}
	free(good);
	free(packed);
	free(file);
}

/* The first scan of a progressive JPEG again and again, changed to give all bits, so that nothing is wrong
 * with that but its being endless. */
static void endless_scans_are_refused(void)
{
	enum { SCANS = 600, BITS = 13 };
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t size;
	char *good = smalti_file_read(image_data("progressive.jpg"), FILE_BYTES, &size, &error);
	char *scan = memmem(good, size, "\xff\xda", 2), *end = scan + 2;
	while (end[0] != '\xff' || end[1] == '\0')
		end++;
	scan[BITS] = 0;
	uint8_t *file = malloc(FILE_BYTES);
	size_t length = (size_t)(scan - good);
	memcpy(file, good, length);
	for (int i = 0; i < SCANS; i++, length += (size_t)(end - scan))
		memcpy(file + length, scan, (size_t)(end - scan));
	memcpy(file + length, "\xff\xd9", 2);
	struct smalti_image_info info;
	CU_ASSERT_PTR_NULL(
	    image_read(test_write("scans", file, length + 2), &images_roomy, 1, &info, &error));
	FAILS(-1, &error, SMALTI_EUNSUPPORTED, "scans", "scans: ", "more than 500 scans");
	free(good);
	free(file);
}

static const struct test tests[] = {
    {"files cut short are refused", files_cut_short_are_refused},
    {"the row where a file ends is named", the_row_where_a_file_ends_is_named},
    {"damaged files do no harm", damaged_files_do_no_harm},
    {"other files are refused", other_files_are_refused},
    {"claims are checked before memory is taken", claims_are_checked_before_memory_is_taken},
    {"bombs do not go off", bombs_do_not_go_off},
    {"endless scans are refused", endless_scans_are_refused},
};

TEST_MAIN("image damage", tests)
