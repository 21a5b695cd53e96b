/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"
#include "image/image_writer.h"
#include "images.h"
#include "png_chunk.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* What Pillow's Image.open(path).convert("RGB") gives: the XXH3 of the pixels. */
static const struct image {
	const char *name;
	int64_t width, height;
	int orientation;
	uint64_t hash;
} images[] = {
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

static void check_image(const struct image *expected, const char *path, int64_t band)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_image_info info;
	uint8_t *pixels = image_read(path, &images_roomy, band, &info, &error);
	SUCCEEDS(pixels ? 0 : -1, &error, expected->name);
	CHECK(pixels && info.width == expected->width && info.height == expected->height, expected->name);
	CHECK(pixels && info.orientation == expected->orientation, expected->name);
	CHECK(pixels && XXH3_64bits(pixels, (size_t)(info.width * info.height * 3)) == expected->hash,
	      expected->name);
	free(pixels);
}

static void images_are_as_pillow_reads_them(void)
{
	static const int64_t bands[] = {1, 5, 1000};
	for (size_t i = 0; i < COUNT(images); i++)
		for (size_t b = 0; b < COUNT(bands); b++)
			check_image(&images[i], image_data(images[i].name), bands[b]);
}

/* A file with more bytes in it at an offset (negative: from its end). */
static const char *write_longer(const char *name, long at, const void *more, size_t count)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length;
	char *bytes = smalti_file_read(image_data(name), 1 << 20, &length, &error);
	char *longer = malloc(length + count);
	const size_t place = at < 0 ? (size_t)((long)length + at) : (size_t)at;
	memcpy(longer, bytes, place);
	memcpy(longer + place, more, count);
	memcpy(longer + place + count, bytes + place, length - place);
	const char *path = test_write(name, longer, length + count);
	free(longer);
	free(bytes);
	return path;
}

static const struct image *image_called(const char *name)
{
	size_t i = 0;
	while (strcmp(images[i].name, name) != 0)
		i++;
	return &images[i];
}

/* As some cameras and editors leave them. In a scan they would be pixels that are lost. */
static void stray_bytes_beside_scans_do_not_matter(void)
{
	static const char *const names[] = {"rgb-420.jpg", "progressive.jpg", "restart.jpg"};
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *path = write_longer(names[i], 20, "\x11\0\x22", 3);
		check_image(image_called(names[i]), path, 4);
	}
	check_image(image_called("rgb-420.jpg"), write_longer("rgb-420.jpg", -2, "\x11\x22", 2), 4);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_image_info info;
	const char *path = write_longer("progressive.jpg", -2, "\xff\xd0 and more", 11);
	FAILS(image_read(path, &images_roomy, 4, &info, &error) ? 0 : -1, &error, SMALTI_EFORMAT, "in a scan",
	      "at row");
}

/* Where EXIF has no orientation. */
static void orientations_are_read_of_xmp(void)
{
	static const struct {
		const char *name;
		long at;
		const char *bytes;
		size_t count;
		int orientation;
	} cases[] = {
	    {"rgb-420.jpg", 2, BYTES("\xff\xe1\0\x33http://ns.adobe.com/xap/1.0/\0tiff:Orientation=\"6\""),
	     6},
	    {"rgb-444.jpg", 2, BYTES("\xff\xe1\0\x33http://ns.adobe.com/xap/1.0/\0tiff:Orientation=\"3\""),
	     6},
	    {"rgb-420.jpg", 2, BYTES("\xff\xe1\0\x33http://ns.adobe.com/xap/2.0/\0tiff:Orientation=\"6\""),
	     1},
	    {"lossy.webp", 138, BYTES("XMP \x14\0\0\0tiff:Orientation=\"7\""), 7},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct image image = *image_called(cases[i].name);
		image.orientation = cases[i].orientation;
		check_image(&image, write_longer(cases[i].name, cases[i].at, cases[i].bytes, cases[i].count),
			    4);
	}
	uint8_t chunk[128];
	static const char text[] = "XML:com.adobe.xmp\0\0\0\0\0<tiff:Orientation>5</tiff:Orientation>";
	const size_t count = png_put_chunk(chunk, "iTXt", text, sizeof(text) - 1);
	struct image image = *image_called("rgb8.png");
	image.orientation = 5;
	check_image(&image, write_longer("rgb8.png", PNG_HEADER_BYTES, chunk, count), 4);
}

/* The content decides, whatever the name says. */
static void names_do_not_matter(void)
{
	static const char *const names[] = {"a.png", "a.webp", "a.jpg", "a.txt", "a"};
	for (size_t i = 0; i < COUNT(images); i += 9)
		for (size_t n = 0; n < COUNT(names); n++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			size_t length;
			char *bytes = smalti_file_read(image_data(images[i].name), 1 << 20, &length, &error);
			check_image(&images[i], test_write(names[n], bytes, length), 3);
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
		const char *path = test_file("long");
		const struct smalti_image_format format = {
		    .width = turned ? 1 : WIDTH, .height = turned ? WIDTH : 1, .depth = 8};
		struct smalti_image_writer *writer = smalti_image_create(path, &format, &error);
		smalti_image_write_rows(writer, 0, format.height, row, &error);
		smalti_image_finish(writer, &error);
		SUCCEEDS(smalti_image_commit(writer, &error), &error, "write");
		struct smalti_image_info info;
		const struct smalti_image_limits limits = {.pixels = WIDTH};
		uint8_t *pixels = image_read(path, &limits, 77, &info, &error);
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
		uint8_t *pixels = image_read(image_data(cases[i].name), &cases[i].limits, 4, &info, &error);
		if (cases[i].word)
			FAILS(pixels ? 0 : -1, &error, SMALTI_EUNSUPPORTED, cases[i].word, cases[i].name,
			      cases[i].word);
		else
			SUCCEEDS(pixels ? 0 : -1, &error, cases[i].name);
		free(pixels);
	}
}

static void rows_come_in_order(void)
{
	static const struct {
		int64_t first, count;
	} cases[] = {{1, 1}, {0, 14}, {0, -1}, {-1, 1}, {0, INT64_MAX}};
	uint8_t rows[21 * 13 * 3];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_image_reader *image =
		    smalti_image_open(image_data("rgb8.png"), &images_roomy, &error);
		FAILS(smalti_image_read_rows(image, cases[i].first, cases[i].count, rows, &error), &error,
		      SMALTI_EINVAL, "order", "rgb8.png", "row 0 was expected");
		struct smalti_error none = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_image_read_rows(image, 0, 0, rows, &none), &none, "no rows");
		SUCCEEDS(smalti_image_read_rows(image, 0, 13, rows, &none), &none, "all rows");
		smalti_image_close(image);
	}
	struct smalti_error error = SMALTI_NO_ERROR, again = SMALTI_NO_ERROR;
	struct smalti_image_reader *image = smalti_image_open(image_claim(7, 13, 0), &images_roomy, &error);
	CU_ASSERT_EQUAL(smalti_image_read_rows(image, 0, 1, rows, &error), -1);
	FAILS(smalti_image_read_rows(image, 0, 1, rows, &again), &again, SMALTI_EINVAL, "again",
	      "nothing after the failure");
	smalti_image_close(image);
}

static const struct test tests[] = {
    {"images are as Pillow reads them", images_are_as_pillow_reads_them},
    {"stray bytes beside scans do not matter", stray_bytes_beside_scans_do_not_matter},
    {"orientations are read of XMP", orientations_are_read_of_xmp},
    {"names do not matter", names_do_not_matter},
    {"long rows are read", long_rows_are_read},
    {"limits are kept", limits_are_kept},
    {"rows come in order", rows_come_in_order},
};

TEST_MAIN("image", tests)
