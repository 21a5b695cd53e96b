/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "checkpoint/npy.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file in memory: magic, version, length, header, `data` bytes that count up from 0. Free with free(). */
static unsigned char *build(int major, const char *header, size_t data, size_t *size)
{
	const size_t length = strlen(header), before = major == 1 ? 10 : 12;
	*size = before + length + data;
	unsigned char *file = calloc(*size, 1);
	memcpy(file, "\x93NUMPY", 6);
	file[6] = (unsigned char)major;
	file[8] = (unsigned char)length;
	file[9] = (unsigned char)(length >> 8);
	memcpy(file + before, header, length);
	for (size_t i = 0; i < data; i++)
		file[before + length + i] = (unsigned char)i;
	return file;
}

#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
#define F4(shape)                   HEADER("'<f4'", "False", shape)

static void arrays_are_found_where_they_lie(void)
{
	static const struct {
		int major;
		const char *header;
		size_t data;
		const char *stored;
		int rank;
		int64_t shape[4];
	} cases[] = {
	    {1, F4("(1, 2, 3, 1)") "         \n", 24, "F32", 4, {1, 2, 3, 1}},
	    {2, HEADER("'<f2'", "False", "(3, 5)") "\n", 30, "F16", 2, {3, 5}},
	    {3, HEADER("'<f8'", "False", "(7,)"), 56, "F64", 1, {7}},
	    {1, F4("()"), 4, "F32", 0, {0}},
	    {1, F4("(0, 9)"), 0, "F32", 2, {0, 9}},
	    {1, F4("(2,3,)"), 24, "F32", 2, {2, 3}},
	    {1, "{\"shape\":(1,),\"descr\":\"<f4\",\"fortran_order\":False}", 4, "F32", 1, {1}},
	    {1,
	     "  {  'shape'  :  ( 1 , 2 ) , 'fortran_order' : False , 'descr' : '<f2' }  \n",
	     4,
	     "F16",
	     2,
	     {1, 2}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t size;
		unsigned char *bytes = build(cases[i].major, cases[i].header, cases[i].data, &size);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_tensor_view view;
		SUCCEEDS(smalti_npy_parse(bytes, (int64_t)size, &view, &error), &error, cases[i].header);
		CHECK(strcmp(view.stored, cases[i].stored) == 0 && view.rank == cases[i].rank &&
			  memcmp(view.shape, cases[i].shape, (size_t)view.rank * sizeof(int64_t)) == 0,
		      cases[i].header);
		CHECK(view.bytes == (int64_t)cases[i].data && view.data == bytes + size - cases[i].data,
		      cases[i].header);
		CHECK(view.usable == (view.stored[1] != '6'), cases[i].header);
		free(bytes);
	}
}

static void bad_headers_are_refused(void)
{
	static const struct {
		int major;
		const char *header;
		size_t data;
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {0, F4("(1,)"), 4, SMALTI_EUNSUPPORTED, "found 0.0"},
	    {4, F4("(1,)"), 4, SMALTI_EUNSUPPORTED, "found 4.0"},
	    {1, HEADER("'<f4'", "True", "(1, 1)"), 4, SMALTI_EUNSUPPORTED, "ascontiguousarray"},
	    {1, HEADER("'>f4'", "False", "(1,)"), 4, SMALTI_EUNSUPPORTED, "found >f4; save it after .astype"},
	    {1, HEADER("'<i8'", "False", "(1,)"), 8, SMALTI_EUNSUPPORTED, "found <i8"},
	    {1, HEADER("'|O'", "False", "(1,)"), 8, SMALTI_EUNSUPPORTED, "found |O"},
	    {1, HEADER("[('a', '<f4')]", "False", "(1,)"), 4, SMALTI_EUNSUPPORTED, "records"},
	    {1, HEADER("'<f4", "False", "(1,)"), 4, SMALTI_EUNSUPPORTED, "<f4, "},
	    {1, HEADER("'\\x3cf4'", "False", "(1,)"), 4, SMALTI_EFORMAT, "a string"},
	    {1, HEADER("<f4", "False", "(1,)"), 4, SMALTI_EFORMAT, "a string"},
	    {1, HEADER("'<f4'", "0", "(1,)"), 4, SMALTI_EFORMAT, "False was expected"},
	    {1, F4("(1)"), 4, SMALTI_EFORMAT, "a tuple of one extent"},
	    {1, F4("[1]"), 4, SMALTI_EFORMAT, "a tuple"},
	    {1, F4("(1"), 4, SMALTI_EFORMAT, "an extent"},
	    {1, F4("(-1,)"), 4, SMALTI_EFORMAT, "an extent"},
	    {1, F4("(1.0,)"), 4, SMALTI_EFORMAT, "a comma"},
	    {1, F4("(,)"), 4, SMALTI_EFORMAT, "an extent"},
	    {1, F4("(1,,1)"), 4, SMALTI_EFORMAT, "an extent"},
	    {1, F4("(1 1)"), 4, SMALTI_EFORMAT, "a comma"},
	    {1, F4("(1,1,1,1,1,1,1,1,1)"), 4, SMALTI_EFORMAT, "8 axes"},
	    {1, F4("(9223372036854775808,)"), 4, SMALTI_EFORMAT, "below 2^63"},
	    {1, F4("(99999999999999999999999,)"), 4, SMALTI_EFORMAT, "below 2^63"},
	    {1, F4("(9223372036854775807,)"), 4, SMALTI_EFORMAT, "do not fit the 4 bytes"},
	    {1, F4("(4294967296, 4294967296)"), 0, SMALTI_EFORMAT, "do not fit"},
	    {1, F4("(0, 4294967296, 4294967296)"), 0, SMALTI_EFORMAT, "do not fit"},
	    {1, F4("(2,)"), 4, SMALTI_EFORMAT, "do not fit"},
	    {1, F4("(1,)"), 5, SMALTI_EFORMAT, "do not fit"},
	    {1, "", 0, SMALTI_EFORMAT, "a dictionary"},
	    {1, "{}", 0, SMALTI_EFORMAT, "lacks 'descr'"},
	    {1, "{'descr': '<f4', 'shape': ()}", 4, SMALTI_EFORMAT, "lacks 'fortran_order'"},
	    {1, "{'descr': '<f4', 'fortran_order': False}", 4, SMALTI_EFORMAT, "lacks 'shape'"},
	    {1, "{'descr': '<f4', 'descr': '<f4'}", 4, SMALTI_EFORMAT, "found 'descr'"},
	    {1, "{'shape': (1,), 'shape': (1,)}", 4, SMALTI_EFORMAT, "found 'shape'"},
	    {1, "{'other': 1}", 4, SMALTI_EFORMAT, "found 'other'"},
	    {1, "{'descr' '<f4'}", 4, SMALTI_EFORMAT, "a colon"},
	    {1, "{'descr': '<f4' 'shape': ()}", 4, SMALTI_EFORMAT, "a comma"},
	    {1, "{'descr': '<f4'", 4, SMALTI_EFORMAT, "a comma"},
	    {1, F4("()") " x", 4, SMALTI_EFORMAT, "nothing more"},
	    {1, "{'descr", 0, SMALTI_EFORMAT, "a string"},
	    {1, "{", 0, SMALTI_EFORMAT, "a string"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t size;
		unsigned char *bytes = build(cases[i].major, cases[i].header, cases[i].data, &size);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_tensor_view view;
		FAILS(smalti_npy_parse(bytes, (int64_t)size, &view, &error), &error, cases[i].code,
		      cases[i].header, cases[i].word);
		free(bytes);
	}
}

/* Each cut in memory of just its size, so that a sanitizer sees what is read beyond it. */
static void cut_files_are_refused(void)
{
	for (int major = 1; major <= 3; major++) {
		size_t size;
		unsigned char *bytes = build(major, F4("(1, 2)") "\n", 8, &size);
		for (size_t cut = 0; cut < size; cut++) {
			unsigned char *part = malloc(cut ? cut : 1);
			memcpy(part, bytes, cut);
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_tensor_view view;
			FAILS(smalti_npy_parse(part, (int64_t)cut, &view, &error), &error, SMALTI_EFORMAT,
			      "cut");
			free(part);
		}
		bytes[major == 1 ? 9 : 11] = 0xff;
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_tensor_view view;
		FAILS(smalti_npy_parse(bytes, (int64_t)size, &view, &error), &error, SMALTI_EFORMAT, "length",
		      "a header of");
		free(bytes);
	}
}

/* numpy.save()'s own bytes. */
static void files_are_as_numpy_writes_them(void)
{
	static const float values[6] = {0, -1, 0.5f, 3, 4e-20f, 1e30f};
	static const struct {
		int rank;
		int64_t shape[3];
		const char *text;
	} cases[] = {
	    {3, {1, 2, 3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }"},
	    {1, {6}, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"},
	    {0, {0}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char expected[128];
		const char *path = test_file("a.npy");
		struct smalti_tensor_view array = {.rank = cases[i].rank, .data = values};
		memcpy(array.shape, cases[i].shape, sizeof(cases[i].shape));
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_npy_write(path, &array, &error), &error, cases[i].text);
		size_t length = 0;
		char *bytes = smalti_file_read(path, 1000, &length, &error);
		snprintf(expected, sizeof(expected), "%-117s\n", cases[i].text);
		const size_t data = cases[i].rank ? sizeof(values) : sizeof(float);
		CHECK(length == 128 + data && memcmp(bytes, "\x93NUMPY\1\0\x76\0", 10) == 0 &&
			  memcmp(bytes + 10, expected, 118) == 0 && memcmp(bytes + 128, values, data) == 0,
		      cases[i].text);
		free(bytes);
	}
}

static void what_cannot_be_written_leaves_nothing(void)
{
	struct smalti_error large = SMALTI_NO_ERROR, directory = SMALTI_NO_ERROR;
	const char *path = test_file("a.npy");
	const struct smalti_tensor_view array = {.rank = 2, .shape = {INT64_MAX, 2}};
	FAILS(smalti_npy_write(path, &array, &large), &large, SMALTI_EINVAL, "large", "a.npy", "too large");
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	FAILS(smalti_npy_write("/nonexistent/a.npy", &(struct smalti_tensor_view){.data = ""}, &directory),
	      &directory, SMALTI_ENOENT, "folder", "/nonexistent/a.npy");
}

static const struct test tests[] = {
    {"arrays are found where they lie", arrays_are_found_where_they_lie},
    {"bad headers are refused", bad_headers_are_refused},
    {"cut files are refused", cut_files_are_refused},
    {"files are as NumPy writes them", files_are_as_numpy_writes_them},
    {"what cannot be written leaves nothing", what_cannot_be_written_leaves_nothing},
};

TEST_MAIN("npy", tests)
