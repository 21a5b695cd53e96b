/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of int8 and fp8: the reference's bytes and scales, and models that are written with them. */
#include "base/file.h"
#include "base/fp8.h"
#include "base/int8.h"
#include "checkpoint/checkpoint.h"
#include "golden.h"
#include "harness.h"
#include "jobs/quantize.h"

#include <math.h>
#include <stdlib.h>

static const char *const cases[] = {"one", "odd", "prime", "dit", "blocks", "outliers", "ties"};

static const struct smalti_tensor_view *find(const struct smalti_safetensors *file, const char *name,
					     const char *part)
{
	char text[64];
	snprintf(text, sizeof(text), "%s.%s", name, part);
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, text);
	CHECK(view, text);
	return view;
}

/* Quantises the rows of a matrix, and compares bytes and scales. */
static void check_rows(const struct smalti_safetensors *file, const char *name, const char *values,
		       const char *codes, const char *scales)
{
	const struct smalti_tensor_view *view = find(file, name, values);
	const int64_t rows = view->shape[0], columns = view->shape[1];
	float *all = golden_values(view), *expected = golden_values(find(file, name, scales));
	const int8_t *bytes = find(file, name, codes)->data;
	int8_t *made = calloc((size_t)columns, 1);
	for (int64_t r = 0; r < rows; r++) {
		const float scale = smalti_int8_scale(all + r * columns, columns);
		CHECK(scale == expected[r], name);
		smalti_int8_round(all + r * columns, columns, scale, made);
		CHECK(memcmp(made, bytes + r * columns, (size_t)columns) == 0, name);
	}
	free(made);
	free(all);
	free(expected);
}

static void rows_are_the_references(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	for (int i = 0; i < COUNT(cases); i++) {
		check_rows(file, cases[i], "w", "int8.q", "int8.scale");
		check_rows(file, cases[i], "x", "w8a8.xq", "w8a8.xscale");
	}
	smalti_safetensors_close(file);
}

static void fp8_is_the_references(void)
{
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	for (int i = 0; i < COUNT(cases); i++) {
		const struct smalti_tensor_view *view = find(file, cases[i], "w");
		const int64_t count = smalti_tensor_elements(view);
		float *values = golden_values(view),
		      *scale = golden_values(find(file, cases[i], "e4m3.scale"));
		const uint8_t *codes = find(file, cases[i], "e4m3.q")->data;
		CHECK((float)test_max_abs(values, count) / smalti_e4m3.largest_value == scale[0], cases[i]);
		for (int64_t k = 0; k < count; k++) {
			const float value = scale[0] > 0 ? values[k] / scale[0] : 0;
			CHECK(smalti_fp8_narrow(&smalti_e4m3, value) == codes[k], cases[i]);
		}
		free(values);
		free(scale);
	}
	smalti_safetensors_close(file);
}

static void scales_of_what_is_no_number(void)
{
	const float zeros[] = {0, -0.f}, infinite[] = {1, INFINITY}, nan[] = {NAN, 1};
	int8_t made[2] = {1, 1};
	CHECK(smalti_int8_scale(zeros, 2) == 0, "zeros");
	smalti_int8_round(zeros, 2, 0, made);
	CHECK(made[0] == 0 && made[1] == 0, "rounded zeros");
	CHECK(isnan(smalti_int8_scale(infinite, 2)) && isnan(smalti_int8_scale(nan, 2)), "NaN");
}

/* Compares a written component with its source: each tensor in its dtype, and no value farther off than the
 * form allows. */
static void check_component(const char *component, const char *stem, enum smalti_quantization quantization,
			    const char *const *in_8_bits)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_quantize_result result;
	char source[1024], target[512];
	int64_t matrices = 0;
	snprintf(source, sizeof(source), "%s", test_model(component));
	snprintf(target, sizeof(target), "%s", test_file("quantized"));
	SUCCEEDS(smalti_quantize(source, target, NULL, quantization, &result, &error), &error, component);
	struct smalti_checkpoint *from = smalti_checkpoint_open(source, stem, NULL, &error);
	struct smalti_checkpoint *to = smalti_checkpoint_open(target, stem, NULL, &error);
	SUCCEEDS(from && to ? 0 : -1, &error, component);
	for (int64_t i = 0; from && to && i < from->count; i++) {
		const struct smalti_tensor_view *old = &from->entries[i].view;
		struct smalti_tensor_view view;
		bool coded = false;
		SUCCEEDS(smalti_checkpoint_find(to, old->name, old->rank, old->shape, &view, &error), &error,
			 old->name);
		for (const char *const *part = in_8_bits; *part; part++)
			coded = coded ||
				(strstr(old->name, *part) && old->rank == 2 && strstr(old->name, ".weight"));
		CHECK(coded == !!view.coding, old->name);
		matrices += coded;
		const int64_t count = smalti_tensor_elements(old);
		float *a = malloc((size_t)count * sizeof(*a)), *b = malloc((size_t)count * sizeof(*b));
		smalti_tensor_values(old, 0, old->shape[0], a);
		smalti_tensor_values(&view, 0, old->shape[0], b);
		const double off = test_max_error(a, b, count) / test_max_abs(a, count);
		CHECK(off <= (!coded                                 ? 0
			      : quantization == SMALTI_QUANTIZE_INT8 ? 0.5001 / 127
								     : 1.0001 / 28),
		      old->name);
		free(a);
		free(b);
	}
	CHECK(matrices > 0 && matrices == result.matrices, "count");
	FAILS(smalti_quantize(source, target, NULL, quantization, &result, &error), &error, SMALTI_EINVAL,
	      "again", "exists");
	smalti_checkpoint_close(from);
	smalti_checkpoint_close(to);
}

static void components_keep_what_is_sensitive(void)
{
	static const char *const t5[] = {".SelfAttention.q.",
					 ".SelfAttention.k.",
					 ".SelfAttention.v.",
					 ".SelfAttention.o.",
					 ".wi_0.",
					 ".wi_1.",
					 NULL};
	static const char *const transformer[] = {"transformer_blocks.", NULL};
	check_component("tesserae/text_encoder", SMALTI_STEM_T5, SMALTI_QUANTIZE_INT8, t5);
	check_component("tesserae/text_encoder", SMALTI_STEM_T5, SMALTI_QUANTIZE_FP8, t5);
	check_component("tesserae/transformer", SMALTI_STEM_DIFFUSERS, SMALTI_QUANTIZE_INT8, transformer);
	check_component("tesserae/transformer", SMALTI_STEM_DIFFUSERS, SMALTI_QUANTIZE_FP8, transformer);
}

/* Compares two files of the same name below two directories. */
static bool same_file(const char *one, const char *other, const char *name)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char paths[2][1024];
	size_t lengths[2] = {0, 0};
	snprintf(paths[0], sizeof(paths[0]), "%s/%s", one, name);
	snprintf(paths[1], sizeof(paths[1]), "%s/%s", other, name);
	char *bytes[] = {smalti_file_read(paths[0], 1 << 26, &lengths[0], &error),
			 smalti_file_read(paths[1], 1 << 26, &lengths[1], &error)};
	const bool same =
	    bytes[0] && bytes[1] && lengths[0] == lengths[1] && memcmp(bytes[0], bytes[1], lengths[0]) == 0;
	free(bytes[0]);
	free(bytes[1]);
	return same;
}

static void a_pipeline_has_its_components(void)
{
	static const char *const copied[] = {"model_index.json", "scheduler/scheduler_config.json",
					     "tokenizer/spiece.model", "vae/config.json",
					     "vae/diffusion_pytorch_model.safetensors"};
	static const struct {
		const char *name, *weights;
	} quantized[] = {{"text_encoder", "model.safetensors"},
			 {"transformer", "diffusion_pytorch_model.safetensors"}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_quantize_result whole, part;
	int64_t matrices = 0;
	char source[1024], scratch[256], target[512], from[1100], to[512], below[600];
	snprintf(source, sizeof(source), "%s", test_model("tesserae"));
	snprintf(scratch, sizeof(scratch), "%s", test_scratch());
	snprintf(target, sizeof(target), "%s/pipeline", scratch);
	SUCCEEDS(smalti_quantize(source, target, NULL, SMALTI_QUANTIZE_INT8, &whole, &error), &error,
		 "pipeline");
	for (int i = 0; i < COUNT(copied); i++)
		CHECK(same_file(source, target, copied[i]), copied[i]);
	for (int i = 0; i < COUNT(quantized); i++) {
		snprintf(from, sizeof(from), "%s/%s", source, quantized[i].name);
		snprintf(to, sizeof(to), "%s/%s", scratch, quantized[i].name);
		snprintf(below, sizeof(below), "%s/%s", target, quantized[i].name);
		SUCCEEDS(smalti_quantize(from, to, NULL, SMALTI_QUANTIZE_INT8, &part, &error), &error,
			 quantized[i].name);
		CHECK(same_file(to, below, quantized[i].weights), quantized[i].weights);
		CHECK(same_file(to, below, "config.json"), quantized[i].name);
		matrices += part.matrices;
	}
	CHECK(matrices > 0 && whole.matrices == matrices, "matrices of both");
}

/* Writes a model_index.json, and quantises that. */
static void check_index(const char *index, enum smalti_code code, const char *words)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_quantize_result result;
	char source[512], target[600];
	snprintf(source, sizeof(source), "%s", test_write("model_index.json", index, strlen(index)));
	*strrchr(source, '/') = '\0';
	snprintf(target, sizeof(target), "%s/target", source);
	FAILS(smalti_quantize(source, target, NULL, SMALTI_QUANTIZE_INT8, &result, &error), &error, code,
	      index, words);
	CHECK(smalti_find_file(target, NULL) == 0, "nothing was written");
}

static void hostile_indexes(void)
{
	check_index("{\"../other\": [\"diffusers\", \"AutoencoderKL\"]}", SMALTI_EFORMAT, "../other");
	check_index("{\"vae/..\": [\"diffusers\", \"AutoencoderKL\"]}", SMALTI_EFORMAT, "vae/..");
	check_index("{\"vae\": [\"diffusers\", \"AutoencoderKL\"]}", SMALTI_ENOENT, "/vae");
	check_index("{\"transformer\": [\"diffusers\", \"PixArtTransformer2DModel\"]}", SMALTI_ENOENT,
		    "/transformer");
	check_index("[1, 2", SMALTI_EFORMAT, "model_index.json");
}

/* A file that Git LFS has not fetched: its name stands once before what it is. */
static void a_pointer_is_not_copied(void)
{
	static const char index[] = "{\"vae\": [\"diffusers\", \"AutoencoderKL\"]}";
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_quantize_result result;
	char source[512], target[600], path[600];
	snprintf(source, sizeof(source), "%s", test_write("model_index.json", index, sizeof(index) - 1));
	*strrchr(source, '/') = '\0';
	snprintf(target, sizeof(target), "%s/target", source);
	snprintf(path, sizeof(path), "%s/vae", source);
	SUCCEEDS(smalti_make_directory(path, &error), &error, "directory");
	snprintf(path, sizeof(path), "%s/vae/config.json", source);
	FILE *file = fopen(path, "w");
	if (!file)
		abort();
	fputs("version https://git-lfs.github.com/spec/v1\n", file);
	fclose(file);
	FAILS(smalti_quantize(source, target, NULL, SMALTI_QUANTIZE_INT8, &result, &error), &error,
	      SMALTI_EFORMAT, "a pointer", "vae/config.json: is a pointer of Git LFS");
	CHECK(smalti_find_file(target, NULL) == 0, "nothing was written");
}

static const struct test tests[] = {
    {"rows of int8", rows_are_the_references},          {"fp8", fp8_is_the_references},
    {"what is no number", scales_of_what_is_no_number}, {"components", components_keep_what_is_sensitive},
    {"a pipeline", a_pipeline_has_its_components},      {"hostile indexes", hostile_indexes},
    {"a pointer of Git LFS", a_pointer_is_not_copied},
};

TEST_MAIN("quantisation", tests)
