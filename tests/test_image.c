/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"
#include "io/exif.h"
#include "io/image.h"
#include "io/image_writer.h"
#include "io/png_text.h"
#include "png_chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* What Pillow's Image.open(path).convert("RGB") gives: the XXH3 of the pixels. */
static const struct picture {
	const char *name;
	int64_t width, height;
	int orientation;
	uint64_t hash;
} pictures[] = {
    {"rgb-420.jpg", 21, 13, 1, UINT64_C(0xcbb0d5bfa0f64fff)},
    {"rgb-422.jpg", 21, 13, 1, UINT64_C(0x957b45eb52c2e6c9)},
    {"rgb-444.jpg", 21, 13, 6, UINT64_C(0xeb256d5cc6ab5dfd)},
    {"progressive.jpg", 21, 13, 8, UINT64_C(0xcbb0d5bfa0f64fff)},
    {"restart.jpg", 21, 13, 1, UINT64_C(0x2c899397905cca23)},
    {"stored-rgb.jpg", 21, 13, 1, UINT64_C(0x13982fbefc24e67f)},
    {"grey.jpg", 21, 13, 1, UINT64_C(0xbbae5e5b8fd1b72e)},
    {"grey-progressive.jpg", 21, 13, 1, UINT64_C(0xbbae5e5b8fd1b72e)},
    {"cmyk.jpg", 21, 13, 1, UINT64_C(0x933fff8fc92d639c)},
    {"ycck.jpg", 21, 13, 1, UINT64_C(0xeda2bcb3afba75dd)},
    {"cmyk-plain.jpg", 21, 13, 1, UINT64_C(0x933fff8fc92d639c)},
    {"one.jpg", 1, 1, 1, UINT64_C(0x1dce1fc0cdc58fe7)},
    {"wide.jpg", 3001, 1, 1, UINT64_C(0xea7d59cced432549)},
    {"grey1.png", 21, 13, 1, UINT64_C(0xb92c127e621785c5)},
    {"palette1.png", 21, 13, 1, UINT64_C(0x10d51d3cf280d4af)},
    {"grey2.png", 21, 13, 1, UINT64_C(0xfe6d9a2b223265a3)},
    {"palette2.png", 21, 13, 1, UINT64_C(0x22b90d2975c38f50)},
    {"grey4.png", 21, 13, 1, UINT64_C(0x6061f99bd0bf4113)},
    {"palette4.png", 21, 13, 1, UINT64_C(0x10637baaabb07959)},
    {"grey8.png", 21, 13, 1, UINT64_C(0xed27fca09041efe4)},
    {"grey16.png", 21, 13, 1, UINT64_C(0x80f956e2898e8acf)},
    {"grey16-transparent.png", 21, 13, 1, UINT64_C(0x80f956e2898e8acf)},
    {"grey2-transparent.png", 21, 13, 1, UINT64_C(0xfe6d9a2b223265a3)},
    {"grey-alpha8.png", 21, 13, 1, UINT64_C(0xed27fca09041efe4)},
    {"grey-alpha16.png", 21, 13, 1, UINT64_C(0xed27fca09041efe4)},
    {"palette8.png", 21, 13, 1, UINT64_C(0x63bef29401d8a25c)},
    {"palette8-transparent.png", 21, 13, 1, UINT64_C(0x63bef29401d8a25c)},
    {"palette8-short.png", 21, 13, 1, UINT64_C(0xd57a5ece1271e047)},
    {"rgb8.png", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"rgb8-transparent.png", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"rgb16.png", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"rgba8.png", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"rgba16.png", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"interlaced-rgb8.png", 21, 13, 5, UINT64_C(0x1ea83d18e8a373fc)},
    {"interlaced-grey16.png", 21, 13, 1, UINT64_C(0x80f956e2898e8acf)},
    {"interlaced-palette4.png", 21, 13, 1, UINT64_C(0x10637baaabb07959)},
    {"interlaced-one.png", 1, 1, 1, UINT64_C(0x8841a8f483ce1d55)},
    {"gamma.png", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"one.png", 1, 1, 1, UINT64_C(0xa79db4af6ec707da)},
    {"lossy.webp", 21, 13, 1, UINT64_C(0xa376c545dd018995)},
    {"lossless.webp", 21, 13, 3, UINT64_C(0x1ea83d18e8a373fc)},
    {"lossy-alpha.webp", 21, 13, 1, UINT64_C(0x7232ef912186979d)},
    {"lossless-alpha.webp", 21, 13, 1, UINT64_C(0x1ea83d18e8a373fc)},
    {"one.webp", 1, 1, 1, UINT64_C(0x3a9250dd84402244)},
};

static const struct smalti_image_limits roomy = {.pixels = 1 << 20, .bytes = 16 << 20};

/* The pixels, read in bands of `band` rows; NULL with an error. */
static uint8_t *read_picture(const char *path, const struct smalti_image_limits *limits, int64_t band,
			     struct smalti_image_info *info, struct smalti_error *error)
{
	struct smalti_image *image = smalti_image_open(path, limits, error);
	if (!image)
		return NULL;
	*info = *smalti_image_info(image);
	uint8_t *pixels = malloc((size_t)(info->width * info->height * 3));
	int status = 0;
	for (int64_t y = 0; y < info->height && !status; y += band) {
		const int64_t count = info->height - y < band ? info->height - y : band;
		/* memory of just the band's size, so that a sanitizer sees what is written beyond it */
		uint8_t *rows = malloc((size_t)(count * info->width * 3));
		status = smalti_image_read_rows(image, y, count, rows, error);
		if (!status)
			memcpy(pixels + y * info->width * 3, rows, (size_t)(count * info->width * 3));
		free(rows);
	}
	smalti_image_close(image);
	if (!status)
		return pixels;
	free(pixels);
	return NULL;
}

static const char *fixture(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "image/%s", name);
	return test_data(path);
}

/* A file of the scratch folder with these bytes. */
static const char *write_file(const char *name, const void *bytes, size_t length)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", test_scratch(), name);
	FILE *file = fopen(path, "wb");
	fwrite(bytes, 1, length, file);
	fclose(file);
	return path;
}

static void check_picture(const struct picture *expected, const char *path, int64_t band)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_image_info info;
	uint8_t *pixels = read_picture(path, &roomy, band, &info, &error);
	SUCCEEDS(pixels ? 0 : -1, &error, expected->name);
	CHECK(pixels && info.width == expected->width && info.height == expected->height, expected->name);
	CHECK(pixels && info.orientation == expected->orientation, expected->name);
	CHECK(pixels && XXH3_64bits(pixels, (size_t)(info.width * info.height * 3)) == expected->hash,
	      expected->name);
	free(pixels);
}

static void pictures_are_as_pillow_reads_them(void)
{
	static const int64_t bands[] = {1, 5, 1000};
	for (size_t i = 0; i < COUNT(pictures); i++)
		for (size_t b = 0; b < COUNT(bands); b++)
			check_picture(&pictures[i], fixture(pictures[i].name), bands[b]);
}

/* The content decides, whatever the name says. */
static void names_do_not_matter(void)
{
	static const char *const names[] = {"a.png", "a.webp", "a.jpg", "a.txt", "a"};
	for (size_t i = 0; i < COUNT(pictures); i += 9)
		for (size_t n = 0; n < COUNT(names); n++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			size_t length;
			char *bytes = smalti_file_read(fixture(pictures[i].name), 1 << 20, &length, &error);
			check_picture(&pictures[i], write_file(names[n], bytes, length), 3);
			free(bytes);
		}
}

static void long_rows_are_read(void)
{
	enum { WIDTH = 100000 };
	static uint8_t row[WIDTH * 3];
	for (int i = 0; i < WIDTH * 3; i++)
		row[i] = (uint8_t)(i * 31 >> 3);
	for (int turned = 0; turned < 2; turned++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = write_file("long", "", 0);
		const struct smalti_image_format format = {
		    .width = turned ? 1 : WIDTH, .height = turned ? WIDTH : 1, .depth = 8};
		struct smalti_image_writer *writer = smalti_image_create(path, &format, &error);
		smalti_image_write_rows(writer, 0, format.height, row, &error);
		smalti_image_finish(writer, &error);
		SUCCEEDS(smalti_image_commit(writer, &error), &error, "write");
		struct smalti_image_info info;
		const struct smalti_image_limits limits = {.pixels = WIDTH};
		uint8_t *pixels = read_picture(path, &limits, 77, &info, &error);
		SUCCEEDS(pixels ? 0 : -1, &error, "read");
		CHECK(pixels && memcmp(pixels, row, sizeof(row)) == 0, "pixels");
		free(pixels);
	}
}

static void limits_are_kept(void)
{
	enum { PIXELS = 21 * 13 };
	static const struct {
		const char *name;
		struct smalti_image_limits limits;
		const char *word; /* NULL: it can be read */
	} cases[] = {
	    {"rgb8.png", {PIXELS, 0}, NULL},
	    {"rgb8.png", {PIXELS - 1, 1 << 20}, "found 21x13"},
	    {"grey16.png", {PIXELS, 0}, NULL},
	    {"interlaced-rgb8.png", {PIXELS, PIXELS * 3 + 13 * 8}, NULL},
	    {"interlaced-rgb8.png", {PIXELS, PIXELS * 3}, "an interlaced PNG has to be held whole"},
	    {"rgb-420.jpg", {PIXELS, 0}, NULL},
	    {"rgb-420.jpg", {PIXELS - 1, 1 << 20}, "found 21x13"},
	    {"cmyk.jpg", {PIXELS, 0}, NULL},
	    {"progressive.jpg", {PIXELS, (6 + 2 + 2) * 128}, NULL},
	    {"progressive.jpg", {PIXELS, (6 + 2 + 2) * 128 - 1}, "several scans has to be held whole"},
	    {"lossy.webp", {PIXELS, 1 << 12}, NULL},
	    {"lossy.webp", {PIXELS - 1, 1 << 20}, "found 21x13"},
	    {"lossy.webp", {PIXELS, PIXELS * 7}, "a WebP has to be held whole"},
	    {"lossy.webp", {PIXELS, 50}, "a WebP has to be held whole"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_image_info info;
		uint8_t *pixels = read_picture(fixture(cases[i].name), &cases[i].limits, 4, &info, &error);
		if (cases[i].word)
			FAILS(pixels ? 0 : -1, &error, SMALTI_EUNSUPPORTED, cases[i].word, cases[i].name,
			      cases[i].word);
		else
			SUCCEEDS(pixels ? 0 : -1, &error, cases[i].name);
		free(pixels);
	}
}

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
		char *bytes = smalti_file_read(fixture(samples[i]), 1 << 20, &length, &error);
		const char *path = write_file("cut", bytes, length);
		for (size_t cut = length; cut-- > 0;) {
			struct smalti_error why = SMALTI_NO_ERROR;
			struct smalti_image_info info;
			if (truncate(path, (off_t)cut))
				abort();
			uint8_t *pixels = read_picture(path, &roomy, 4, &info, &why);
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
	const char *path = write_file("tall.png", "", 0);
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
	CU_ASSERT_PTR_NULL(read_picture(path, &roomy, 10, &info, &why));
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
		char *bytes = smalti_file_read(fixture(samples[i]), 1 << 20, &length, &error);
		for (size_t at = 0; at < length; at++) {
			struct smalti_error why = SMALTI_NO_ERROR;
			struct smalti_image_info info;
			bytes[at] ^= (char)(1 << at % 8);
			uint8_t *pixels =
			    read_picture(write_file("changed", bytes, length), &roomy, 4, &info, &why);
			bytes[at] ^= (char)(1 << at % 8);
			CHECK(!pixels == (why.code != SMALTI_OK), why.message);
			free(pixels);
		}
		free(bytes);
	}
}

#define BYTES(text) (text), sizeof(text) - 1

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
		const char *path = write_file("other", cases[i].bytes, cases[i].length);
		CU_ASSERT_PTR_NULL(read_picture(path, &roomy, 1, &info, &error));
		FAILS(-1, &error, cases[i].code, cases[i].word, "other: ", cases[i].word);
	}
	static const struct {
		const char *path, *word;
		enum smalti_code code;
	} files[] = {
	    {"/nonexistent.png", "cannot be opened", SMALTI_EIO},
	    {"/", "is a folder", SMALTI_EIO},
	    {"/dev/null", "is a device", SMALTI_EIO},
	};
	for (size_t i = 0; i < COUNT(files); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		CU_ASSERT_PTR_NULL(smalti_image_open(files[i].path, &roomy, &error));
		FAILS(-1, &error, files[i].code, files[i].path, files[i].path, files[i].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_image_open(fixture("animated.webp"), &roomy, &error));
	FAILS(-1, &error, SMALTI_EUNSUPPORTED, "animated", "animated.webp", "is animated");
}

enum { FILE_BYTES = 1 << 20, IHDR_END = PNG_HEADER_BYTES };

/* Writes a PNG that claims its extents but holds no pixels. */
static const char *write_claim(uint64_t width, uint64_t height, int interlace)
{
	uint8_t file[PNG_CLAIM_BYTES];
	png_put_claim(file, width, height, interlace);
	return write_file("claim", file, sizeof(file));
}

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
		const char *path = write_claim(cases[i].width, cases[i].height, cases[i].interlace);
		CU_ASSERT_PTR_NULL(read_picture(path, &roomy, 1, &info, &error));
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
	char *good = smalti_file_read(fixture("rgb8.png"), FILE_BYTES, &size, &error);
	for (size_t i = 0; i < COUNT(cases); i++) {
		memcpy(packed + 32 - cases[i].bytes, cases[i].start, cases[i].bytes);
		memcpy(file, good, IHDR_END);
		const size_t end =
		    IHDR_END + png_put_chunk(file + IHDR_END, cases[i].name, packed + 32 - cases[i].bytes,
					     length + cases[i].bytes);
		memcpy(file + end, good + IHDR_END, size - IHDR_END);
		struct smalti_image_info info;
		const char *path = write_file("bomb", file, end + size - IHDR_END);
		uint8_t *pixels = read_picture(path, &roomy, 1, &info, &error);
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
	char *good = smalti_file_read(fixture("progressive.jpg"), FILE_BYTES, &size, &error);
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
	CU_ASSERT_PTR_NULL(read_picture(write_file("scans", file, length + 2), &roomy, 1, &info, &error));
	FAILS(-1, &error, SMALTI_EUNSUPPORTED, "scans", "scans: ", "more than 500 scans");
	free(good);
	free(file);
}

static void rows_come_in_order(void)
{
	static const struct {
		int64_t first, count;
	} cases[] = {{1, 1}, {0, 14}, {0, -1}, {-1, 1}, {0, INT64_MAX}};
	uint8_t rows[21 * 13 * 3];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_image *image = smalti_image_open(fixture("rgb8.png"), &roomy, &error);
		FAILS(smalti_image_read_rows(image, cases[i].first, cases[i].count, rows, &error), &error,
		      SMALTI_EINVAL, "order", "rgb8.png", "row 0 was expected");
		struct smalti_error none = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_image_read_rows(image, 0, 0, rows, &none), &none, "no rows");
		SUCCEEDS(smalti_image_read_rows(image, 0, 13, rows, &none), &none, "all rows");
		smalti_image_close(image);
	}
	struct smalti_error error = SMALTI_NO_ERROR, again = SMALTI_NO_ERROR;
	struct smalti_image *image = smalti_image_open(write_claim(7, 13, 0), &roomy, &error);
	CU_ASSERT_EQUAL(smalti_image_read_rows(image, 0, 1, rows, &error), -1);
	FAILS(smalti_image_read_rows(image, 0, 1, rows, &again), &again, SMALTI_EINVAL, "again",
	      "nothing after the failure");
	smalti_image_close(image);
}

#define ENTRY "\x12\1\3\0\1\0\0\0\6\0\0\0"
#define OTHER "\x0f\1\2\0\1\0\0\0\6\0\0\0"

static void orientations_are_found(void)
{
	static const struct {
		const char *bytes;
		size_t length;
		int expected;
	} cases[] = {
	    {BYTES(""), 0},
	    {BYTES("II*\0\x8\0\0\0\1\0" ENTRY), 6},
	    {BYTES("Exif\0\0II*\0\x8\0\0\0\1\0" ENTRY), 6},
	    {BYTES("II*\0\x9\0\0\0.\2\0" OTHER ENTRY), 6},
	    {BYTES("II*\0\x9\0\0\0.\1\0" OTHER ENTRY), 0}, /* behind the directory */
	    {BYTES("MM\0*\0\0\0\x8\0\1\1\x12\0\3\0\0\0\1\0\x8\0\0"), 8},
	    {BYTES("MM\0*\0\0\0\x8\0\1\1\x12\0\3\0\0\0\1\0\x9\0\0"), 0},    /* no such way */
	    {BYTES("MM\0*\0\0\0\x8\0\1\1\x12\0\4\0\0\0\1\0\x1\0\0"), 0},    /* no SHORT */
	    {BYTES("MM\0*\0\0\0\x8\0\1\1\x12\0\3\0\0\0\1\0"), 0},           /* cut short */
	    {BYTES("MM\0*\xff\xff\xff\xff\0\1\1\x12\0\3\0\0\0\1\0\x3"), 0}, /* far away */
	    {BYTES("MM*\0\0\0\0\x8\0\1\1\x12\0\3\0\0\0\1\0\x8\0\0"), 0},
	    {BYTES("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>"), 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t *bytes = malloc(cases[i].length + 1);
		memcpy(bytes, cases[i].bytes, cases[i].length);
		uint8_t *exact = realloc(bytes, cases[i].length ? cases[i].length : 1);
		CU_ASSERT_EQUAL(smalti_exif_orientation(exact, (int64_t)cases[i].length), cases[i].expected);
		free(exact);
	}
}

static const struct test tests[] = {
    {"pictures are as Pillow reads them", pictures_are_as_pillow_reads_them},
    {"names do not matter", names_do_not_matter},
    {"long rows are read", long_rows_are_read},
    {"limits are kept", limits_are_kept},
    {"files cut short are refused", files_cut_short_are_refused},
    {"the row where a file ends is named", the_row_where_a_file_ends_is_named},
    {"damaged files do no harm", damaged_files_do_no_harm},
    {"other files are refused", other_files_are_refused},
    {"claims are checked before memory is taken", claims_are_checked_before_memory_is_taken},
    {"bombs do not go off", bombs_do_not_go_off},
    {"endless scans are refused", endless_scans_are_refused},
    {"rows come in order", rows_come_in_order},
    {"orientations are found", orientations_are_found},
};

TEST_MAIN("image", tests)
