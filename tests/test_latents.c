/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "checkpoint/latents.h"
#include "checkpoint/npy.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file that begins with `start` and its `length`, then data. */
static const char *write_file(const char *name, const void *start, size_t length, const void *data,
			      size_t bytes)
{
	const char *path = test_file(name);
	FILE *file = fopen(path, "wb");
	fwrite(start, 1, length, file);
	fwrite(data, 1, bytes, file);
	fclose(file);
	return path;
}

static const char *write_safetensors(const char *header, const void *data, size_t bytes)
{
	char start[1024] = {0};
	const size_t length = strlen(header);
	start[0] = (char)(length & 0xff);
	start[1] = (char)(length >> 8);
	memcpy(start + 8, header, length);
	return write_file("a.safetensors", start, 8 + length, data, bytes);
}

static const char *write_npy(const char *header, const void *data, size_t bytes)
{
	char start[256] = "\x93NUMPY\1";
	start[8] = (char)strlen(header);
	memcpy(start + 10, header, strlen(header));
	return write_file("a.npy", start, 10 + strlen(header), data, bytes);
}

/* Two items of 3 channels, 1 x 2 each: the values -3, -2.5, -2, ... are exact in every type. */
enum { VALUES = 12, ITEM = 6 };

static float value_at(int i)
{
	return (float)i / 2 - 3;
}

/* The values in a type of a file; returns the bytes. */
static size_t fill(const char *stored, void *to)
{
	for (int i = 0; i < VALUES; i++) {
		const float value = value_at(i);
		const double wide = (double)value;
		if (strcmp(stored, "F64") == 0)
			memcpy((double *)to + i, &wide, sizeof(wide));
		else if (strcmp(stored, "F32") == 0)
			memcpy((float *)to + i, &value, sizeof(value));
		else
			((uint16_t *)to)[i] =
			    strcmp(stored, "F16") == 0 ? smalti_f32_to_f16(value) : smalti_f32_to_bf16(value);
	}
	return VALUES * (strcmp(stored, "F64") == 0 ? 8 : strcmp(stored, "F32") == 0 ? 4 : 2);
}

static void check_values(const char *path, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_latents *latents = smalti_latents_open(path, NULL, &error);
	SUCCEEDS(latents ? 0 : -1, &error, what);
	const struct smalti_latents_info *info = latents ? smalti_latents_info(latents) : NULL;
	CHECK(info && info->count == 2 && info->channels == 3 && info->height == 1 && info->width == 2, what);
	for (int item = 1; latents && item >= 0; item--) {
		float planes[ITEM];
		SUCCEEDS(smalti_latents_read(latents, item, planes, &error), &error, what);
		for (int i = 0; i < ITEM; i++)
			CHECK(planes[i] == value_at(item * ITEM + i), what);
	}
	smalti_latents_close(latents);
}

static void every_type_is_read(void)
{
	static const struct {
		const char *stored, *descr; /* NULL: NumPy has no such type */
	} cases[] = {{"F32", "<f4"}, {"F16", "<f2"}, {"F64", "<f8"}, {"BF16", NULL}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		double data[VALUES];
		char header[256];
		const size_t bytes = fill(cases[i].stored, data);
		/* a name of odd length: data at any alignment */
		snprintf(header, sizeof(header),
			 "{\"x\":{\"dtype\":\"%s\",\"shape\":[2,3,1,2],\"data_offsets\":[0,%zu]}}",
			 cases[i].stored, bytes);
		check_values(write_safetensors(header, data, bytes), cases[i].stored);
		if (!cases[i].descr)
			continue;
		snprintf(header, sizeof(header),
			 "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3, 1, 2), }\n",
			 cases[i].descr);
		check_values(write_npy(header, data, bytes), cases[i].descr);
	}
}

static void what_is_written_is_read(void)
{
	float data[VALUES];
	fill("F32", data);
	const struct smalti_tensor_view view = {
	    .name = "latents", .dtype = SMALTI_F32, .rank = 4, .shape = {2, 3, 1, 2}, .data = data};
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = test_file("named.otherwise");
	SUCCEEDS(smalti_npy_write(path, &view, &error), &error, "npy");
	check_values(path, "npy");
	SUCCEEDS(smalti_safetensors_write(path, &view, 1, &error), &error, "safetensors");
	check_values(path, "safetensors");
}

#define TENSOR(name, shape, begin, end)                                                                      \
	"\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void tensors_are_chosen(void)
{
	static const char single[] =
	    "{" TENSOR("x", "[1,1,1]", "0", "4") "," TENSOR("y", "[2]", "4", "12") "}";
	static const char several[] =
	    "{" TENSOR("mean", "[1,1,1]", "0", "4") "," TENSOR("std", "[2,1,1]", "4", "12") "}";
	static const char named[] =
	    "{" TENSOR("latents", "[1,1,1]", "0", "4") "," TENSOR("z", "[2,1,1]", "4", "12") "}";
	static const char flat[] = "{" TENSOR("latents", "[3]", "0", "12") "}";
	static const char none[] = "{" TENSOR("y", "[3]", "0", "12") "}";
	static const struct {
		const char *header, *key;
		int64_t channels; /* 0: refused */
		const char *words[2];
	} cases[] = {
	    {single, NULL, 1, {NULL}},
	    {single, "x", 1, {NULL}},
	    {single, "y", 0, {"a.safetensors: y: expected [channels", "found 1 axes"}},
	    {single, "latents", 0, {"\"latents\"", "found: x [1,1,1], y [2]"}},
	    {several, NULL, 0, {"choose one by its name", "found: mean [1,1,1], std [2,1,1]"}},
	    {several, "std", 2, {NULL}},
	    {named, NULL, 1, {NULL}},
	    {named, "z", 2, {NULL}},
	    {flat, NULL, 0, {"latents: expected [channels", "found 1 axes"}},
	    {none, NULL, 0, {"a single one of 3 or 4 axes", "found: y [3]"}},
	};
	static const float data[3];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = write_safetensors(cases[i].header, data, sizeof(data));
		struct smalti_latents *latents = smalti_latents_open(path, cases[i].key, &error);
		if (cases[i].channels) {
			SUCCEEDS(latents ? 0 : -1, &error, cases[i].header);
			const struct smalti_latents_info *info =
			    latents ? smalti_latents_info(latents) : NULL;
			CHECK(info && info->count == 1 && info->channels == cases[i].channels,
			      cases[i].header);
		} else {
			FAILS(latents ? 0 : -1, &error, SMALTI_EFORMAT, cases[i].header, cases[i].words[0],
			      cases[i].words[1], "a.safetensors: ");
		}
		smalti_latents_close(latents);
	}
}

static void other_files_are_refused(void)
{
	static const struct {
		bool npy;
		const char *header;
		enum smalti_code code;
		const char *key, *word;
	} cases[] = {
	    {false, "{\"x\":{\"dtype\":\"I32\",\"shape\":[1,1,1],\"data_offsets\":[0,4]}}",
	     SMALTI_EUNSUPPORTED, NULL, "x: expected F32, F16, BF16 or F64, found I32"},
	    {false,
	     "{\"x\":{\"dtype\":\"F32\",\"shape\":[0,1,1],\"data_offsets\":[0,0]},"
	     "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	     SMALTI_EFORMAT, NULL, "x: an axis is 0"},
	    {false, "{\"y\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", SMALTI_EFORMAT, "y",
	     "found 0 axes"},
	    {false, "{", SMALTI_EFORMAT, NULL, "JSON"},
	    {true, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }", SMALTI_EFORMAT, NULL,
	     "a.npy: expected [channels"},
	    {true, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }", SMALTI_EINVAL, "x",
	     "a.npy: the array of an .npy file has no name"},
	    {true, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1, 1), }", SMALTI_EUNSUPPORTED, NULL,
	     "a.npy: an array in Fortran's order"},
	};
	static const float data[1];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = cases[i].npy ? write_npy(cases[i].header, data, sizeof(data))
						: write_safetensors(cases[i].header, data, sizeof(data));
		CU_ASSERT_PTR_NULL(smalti_latents_open(path, cases[i].key, &error));
		FAILS(-1, &error, cases[i].code, cases[i].word, path, cases[i].word);
	}
	struct smalti_error empty = SMALTI_NO_ERROR, absent = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_latents_open(write_file("empty", "", 0, "", 0), NULL, &empty));
	FAILS(-1, &empty, SMALTI_EFORMAT, "empty", "empty: ", "only 0 bytes");
	CU_ASSERT_PTR_NULL(smalti_latents_open("/nonexistent", NULL, &absent));
	FAILS(-1, &absent, SMALTI_ENOENT, "absent", "/nonexistent");
}

/* [2, 3, 5, 7] with one value in the way: its place is named, and other items can be read. */
static void values_that_are_not_finite_are_named(void)
{
	enum { C = 3, H = 5, W = 7, ALL = 2 * C * H * W };
	static const struct {
		int item, channel, row, column;
		double value;
	} cases[] = {
	    {0, 0, 0, 0, NAN},
	    {1, 2, 4, 6, INFINITY},
	    {1, 0, 3, 1, -INFINITY},
	    {0, 1, 2, 3, 1e300},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		double data[ALL] = {0};
		char place[128];
		data[((cases[i].item * C + cases[i].channel) * H + cases[i].row) * W + cases[i].column] =
		    cases[i].value;
		data[(cases[i].item + 1) * C * H * W - 1] = cases[i].value; /* the first is named */
		snprintf(place, sizeof(place),
			 "a.npy: item %d, channel %d, row %d, column %d: ", cases[i].item, cases[i].channel,
			 cases[i].row, cases[i].column);
		const char *path = write_npy(
		    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 5, 7), }", data, sizeof(data));
		struct smalti_error error = SMALTI_NO_ERROR, none = SMALTI_NO_ERROR;
		struct smalti_latents *latents = smalti_latents_open(path, NULL, &none);
		float planes[C * H * W];
		FAILS(smalti_latents_read(latents, cases[i].item, planes, &error), &error, SMALTI_EFORMAT,
		      place, place, "a finite number was expected");
		SUCCEEDS(smalti_latents_read(latents, 1 - cases[i].item, planes, &none), &none, place);
		for (int64_t item = -1; item <= 2; item += 3) {
			struct smalti_error range = SMALTI_NO_ERROR;
			FAILS(smalti_latents_read(latents, item, planes, &range), &range, SMALTI_EINVAL,
			      "range", "a.npy: item", "of 2");
		}
		smalti_latents_close(latents);
	}
}

static const struct test tests[] = {
    {"every type is read", every_type_is_read},
    {"what is written is read", what_is_written_is_read},
    {"tensors are chosen", tensors_are_chosen},
    {"other files are refused", other_files_are_refused},
    {"values that are not finite are named", values_that_are_not_finite_are_named},
};

TEST_MAIN("latents", tests)
