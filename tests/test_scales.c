/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales beside tensors of 8 bits (checkpoint/scales.h). */
#include "checkpoint/checkpoint.h"
#include "harness.h"

#include <math.h>

enum { MOST = 3 };

/* A tensor as a file has it. */
struct stored {
	const char *name, *dtype, *shape;
	const void *bytes;
	int size;
};

static const float one[] = {0.5f}, two[] = {0.5f, 2}, three[] = {1, 2, 3}, damaged[] = {1, NAN},
		   scb[] = {127, 254};
static const unsigned char fp8[] = {0x38, 0x40, 0xb8, 0x00}; /* 1, 2, −1, 0 */
static const signed char i8[] = {1, -127, 100, 0};
static const unsigned char rows = 0, turing = 2;

/* Writes a checkpoint with the tensors, and opens it. */
static struct smalti_checkpoint *open_stored(const struct stored tensors[MOST], struct smalti_error *error)
{
	static char directory[512];
	char header[1024] = "{", path[600];
	int end = 0;
	for (int i = 0; i < MOST && tensors[i].name; i++) {
		char text[256];
		snprintf(text, sizeof(text),
			 "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}", i ? "," : "",
			 tensors[i].name, tensors[i].dtype, tensors[i].shape, end, end + tensors[i].size);
		strcat(header, text);
		end += tensors[i].size;
	}
	strcat(header, "}");
	snprintf(directory, sizeof(directory), "%s", test_scratch());
	snprintf(path, sizeof(path), "%s/model.safetensors", directory);
	FILE *file = fopen(path, "wb");
	const uint64_t length = strlen(header);
	fwrite(&length, sizeof(length), 1, file);
	fwrite(header, 1, length, file);
	for (int i = 0; i < MOST && tensors[i].name; i++)
		fwrite(tensors[i].bytes, 1, (size_t)tensors[i].size, file);
	fclose(file);
	return smalti_checkpoint_open(directory, "model", NULL, error);
}

#define WEIGHT(dtype, bytes)                                                                                 \
	{                                                                                                    \
		"x.weight", dtype, "[2,2]", bytes, 4                                                         \
	}
#define F32S(name, values)                                                                                   \
	{                                                                                                    \
		name, "F32",                                                                                 \
		    sizeof(values) == 4   ? "[1]"                                                            \
		    : sizeof(values) == 8 ? "[2,1]"                                                          \
					  : "[3]",                                                           \
		    values, sizeof(values)                                                                   \
	}
#define MARKER                                                                                               \
	{                                                                                                    \
		"scaled_fp8", "F8_E4M3", "[0]", "", 0                                                        \
	}

static void values_are_scaled(void)
{
	static const struct {
		const char *what;
		struct stored tensors[MOST];
		float values[4];
	} cases[] = {
	    {"plain fp8", {WEIGHT("F8_E4M3", fp8)}, {1, 2, -1, 0}},
	    {"plain fp8 of the other kind", {WEIGHT("F8_E5M2", fp8)}, {0.5f, 2, -0.5f, 0}},
	    {"a scale without axes, and one of the inputs",
	     {WEIGHT("F8_E4M3", fp8), {"x.weight_scale", "F32", "[]", one, 4}, F32S("x.scale_input", one)},
	     {0.5f, 1, -0.5f, 0}},
	    {"one scale", {WEIGHT("F8_E4M3", fp8), F32S("x.scale_weight", one), MARKER}, {0.5f, 1, -0.5f, 0}},
	    {"a scale for each row", {WEIGHT("F8_E4M3", fp8), F32S("x.weight_scale", two)}, {0.5f, 1, -2, 0}},
	    {"integers", {WEIGHT("I8", i8), F32S("x.weight_scale", two)}, {0.5f, -63.5f, 200, 0}},
	    {"LLM.int8",
	     {WEIGHT("I8", i8), F32S("x.SCB", scb), {"x.weight_format", "U8", "[]", &rows, 1}},
	     {1, -127, 200, 0}},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_checkpoint *checkpoint = open_stored(cases[i].tensors, &error);
		SUCCEEDS(checkpoint ? 0 : -1, &error, cases[i].what);
		struct smalti_tensor_view view;
		float values[4];
		SUCCEEDS(
		    smalti_checkpoint_find(checkpoint, "x.weight", 2, (const int64_t[]){2, 2}, &view, &error),
		    &error, cases[i].what);
		smalti_tensor_values(&view, 0, 2, values);
		CHECK(memcmp(values, cases[i].values, sizeof(values)) == 0, cases[i].what);
		smalti_tensor_cut(&view, 1, 1);
		smalti_tensor_values(&view, 0, 1, values);
		CHECK(memcmp(values, cases[i].values + 2, 2 * sizeof(float)) == 0, "cut");
		for (int64_t t = 0; t < checkpoint->count; t++)
			CHECK(checkpoint->entries[t].beside ==
				  (strcmp(checkpoint->entries[t].view.name, "x.weight") != 0),
			      "what is beside");
		smalti_checkpoint_close(checkpoint);
	}
}

static void missing_and_damaged_scales_are_errors(void)
{
	static const struct {
		const char *what;
		struct stored tensors[MOST];
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {"integers alone", {WEIGHT("I8", i8)}, SMALTI_EFORMAT, "without its scale"},
	    {"fp8 with the marker", {WEIGHT("F8_E4M3", fp8), MARKER}, SMALTI_EFORMAT, "without its scale"},
	    {"fp8 beside scaled fp8",
	     {WEIGHT("F8_E5M2", fp8), {"y.weight", "F8_E4M3", "[4]", fp8, 4}, F32S("y.weight_scale", one)},
	     SMALTI_EFORMAT,
	     "without its scale"},
	    {"too many scales", {WEIGHT("I8", i8), F32S("x.weight_scale", three)}, SMALTI_EFORMAT, "found 3"},
	    {"a scale of 16 bits",
	     {WEIGHT("I8", i8), {"x.weight_scale", "F16", "[2]", two, 4}},
	     SMALTI_EUNSUPPORTED,
	     "should be F32"},
	    {"NaN",
	     {WEIGHT("I8", i8), F32S("x.weight_scale", damaged)},
	     SMALTI_ECORRUPT,
	     "scale 1 is not finite"},
	    {"a GPU's layout",
	     {WEIGHT("I8", i8), F32S("x.SCB", scb), {"x.weight_format", "U8", "[]", &turing, 1}},
	     SMALTI_EUNSUPPORTED,
	     "layout"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_checkpoint *checkpoint = open_stored(cases[i].tensors, &error);
		struct smalti_tensor_view view;
		int status = -1;
		if (checkpoint)
			status = smalti_checkpoint_find(checkpoint, "x.weight", 2, (const int64_t[]){2, 2},
							&view, &error);
		FAILS(status, &error, cases[i].code, cases[i].what, "model.safetensors", "x.weight",
		      cases[i].word);
		smalti_checkpoint_close(checkpoint);
	}
}

static const struct test tests[] = {
    {"values are scaled", values_are_scaled},
    {"missing and damaged scales", missing_and_damaged_scales_are_errors},
};

TEST_MAIN("scales", tests)
