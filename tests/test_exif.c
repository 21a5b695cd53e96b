/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "image/image_decoder.h"

#include <stdlib.h>
#include <string.h>

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

static void orientations_are_found_in_xmp(void)
{
	static const struct {
		const char *text;
		int expected;
	} cases[] = {
	    {"", 0},
	    {"<rdf tiff:Orientation=\"6\"/>", 6},
	    {"<tiff:Orientation>8</tiff:Orientation>", 8},
	    {"tiff:Orientation tiff:Orientation=3 tiff:Orientation=\"3", 3},
	    {"tiff:Orientation=\"9\" tiff:Orientation=\"3\"", 0},
	    {"tiff:Orientation=\"0\"", 0},
	    {"tiff:Orientation=\"", 0},
	    {"tiff:Orientation>", 0},
	    {"tiff:Orientation", 0},
	    {"tiff:Orientation=\"x\"", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const size_t length = strlen(cases[i].text);
		uint8_t *exact = malloc(length ? length : 1);
		memcpy(exact, cases[i].text, length);
		CHECK(smalti_xmp_orientation(exact, (int64_t)length) == cases[i].expected, cases[i].text);
		free(exact);
	}
}

static const struct test tests[] = {
    {"orientations are found", orientations_are_found},
    {"orientations are found in XMP", orientations_are_found_in_xmp},
};

TEST_MAIN("exif", tests)
