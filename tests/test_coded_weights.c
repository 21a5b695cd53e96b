/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose files have weights of 8 bits, against the reference's outputs. */
#include "base/int8.h"
#include "base/rows8.h"
#include "checkpoint/gguf_types.h"
#include "codelets/codelets.h"
#include "gguf_file.h"
#include "golden.h"
#include "harness.h"
#include "jobs/precision.h"
#include "jobs/quantize.h"
#include "stage.h"

static struct smalti_session *session;

enum { WIDTH = 128, MOST_TOKENS = 16 };

/* Reads the tokens, int64, which no checkpoint has. */
static int64_t read_ids(const struct smalti_safetensors *file, int32_t ids[MOST_TOKENS])
{
	int64_t wide[MOST_TOKENS];
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, "ids");
	const int64_t count = view->bytes / (int64_t)sizeof(wide[0]);
	memcpy(wide, view->data, (size_t)view->bytes);
	for (int64_t i = 0; i < count; i++)
		ids[i] = (int32_t)wide[i];
	return count;
}

/* Encodes; tells whether weights are 8-bit rows in memory. */
static bool encode(const char *component, const int32_t *ids, int64_t tokens, bool streamed,
		   enum smalti_text_encoder_precision precision, float *y)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(component, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, component);
	SUCCEEDS(smalti_t5_config_open(component, checkpoint, &config, &error), &error, "configuration");
	smalti_text_encoder_choose(precision, checkpoint);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_text_encoder *t5 = smalti_t5_new(task_group, &config, checkpoint, SMALTI_F32, &error);
	SUCCEEDS(t5 ? 0 : -1, &error, "encoder");
	const bool rows8 = smalti_weights_have_rows8(t5->weights);
	if (streamed)
		t5->functions->stream(t5);
	SUCCEEDS(stage_t5(session, t5, ids, tokens, y, &error), &error, "encode");
	smalti_text_encoder_free(t5);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
	return rows8;
}

/* Makes a directory with a file of tests/data under the name of a checkpoint. */
static const char *directory_of(const char *file)
{
	static char directory[512];
	char link[600];
	snprintf(directory, sizeof(directory), "%s", test_scratch());
	snprintf(link, sizeof(link), "%s/model.safetensors", directory);
	CHECK(symlink(test_data(file), link) == 0, link);
	snprintf(link, sizeof(link), "%s/config.json", directory);
	CHECK(symlink(test_model("tesserae/text_encoder/config.json"), link) == 0, link);
	return directory;
}

/* Compares the states of a component, streamed or not, with NAME.out of the file; they are made by rows of 8
 * bits, or not. */
static void check_states(const char *component, const struct smalti_safetensors *file, const char *name,
			 bool rows8)
{
	float y[MOST_TOKENS * WIDTH], streamed[MOST_TOKENS * WIDTH];
	int32_t ids[MOST_TOKENS];
	char text[96];
	const int64_t tokens = read_ids(file, ids);
	CHECK(encode(component, ids, tokens, false, SMALTI_TEXT_ENCODER_STORED, y) == rows8, name);
	CHECK(encode(component, ids, tokens, true, SMALTI_TEXT_ENCODER_STORED, streamed) == rows8, name);
	golden_near(streamed, y, tokens * WIDTH, 5e-6,
		    "streamed"); /* devices and CPUs may have shared it otherwise */
	snprintf(text, sizeof(text), "%s.out", name);
	float *expected = golden_values(smalti_safetensors_find(file, text));
	golden_near(y, expected, tokens * WIDTH, 2e-5, name);
	printf("\n    %s: %.1e of the largest", name,
	       test_max_error(y, expected, tokens * WIDTH) / test_max_abs(expected, tokens * WIDTH));
	free(expected);
}

static void text_encoders_of_8_bits(void)
{
	static const char *const names[] = {"t5-fp8", "t5-fp8-scaled", "t5-llm-int8"};
	struct smalti_safetensors *file = golden_open("golden/quant/t5.safetensors");
	for (int i = 0; i < COUNT(names); i++) {
		char text[96];
		snprintf(text, sizeof(text), "golden/quant/%s.safetensors", names[i]);
		check_states(directory_of(text), file, names[i], true);
	}
	smalti_safetensors_close(file);
}

static void text_encoders_of_gguf(void)
{
	static const char *const names[] = {"t5-q8_0", "t5-q4_0"};
	struct smalti_safetensors *file = golden_open("golden/gguf/dequantised.safetensors");
	for (int i = 0; i < COUNT(names); i++) {
		char text[96], path[1024];
		snprintf(text, sizeof(text), "golden/gguf/%s.gguf", names[i]);
		snprintf(path, sizeof(path), "%s", test_data(text));
		check_states(path, file, names[i], false);
	}
	smalti_safetensors_close(file);
}

/* A text encoder whose weights become int8 is that of a file with such weights, but for the products of wo,
 * which a file keeps; and near that of f32. One that rounds inputs, too, is another one, and as near. */
static void text_encoder_in_int8(void)
{
	static const int32_t ids[] = {5, 7, 100, 33, 1};
	enum { TOKENS = COUNT(ids), VALUES = TOKENS * WIDTH };
	static float y[3][VALUES], streamed[VALUES];
	char model[1024];
	snprintf(model, sizeof(model), "%s", test_model("tesserae/text_encoder"));
	for (int i = 0; i < 3; i++) {
		encode(model, ids, TOKENS, false, (enum smalti_text_encoder_precision)i, y[i]);
		encode(model, ids, TOKENS, true, (enum smalti_text_encoder_precision)i, streamed);
		/* devices may round inputs otherwise */
		golden_near(streamed, y[i], VALUES, i == SMALTI_TEXT_ENCODER_W8A8 ? 2e-2 : 5e-6, "streamed");
		for (int other = 0; other < i; other++) {
			const double far =
			    test_max_error(y[i], y[other], VALUES) / test_max_abs(y[0], VALUES);
			printf("\n    %s and %s: %.1e of the largest", smalti_text_encoder_precisions[i],
			       smalti_text_encoder_precisions[other], far);
			const bool rounds_both =
			    i == SMALTI_TEXT_ENCODER_W8A8 && other == SMALTI_TEXT_ENCODER_STORED;
			CHECK(far > 1e-4 && far < (rounds_both ? 0.05 : 0.03),
			      "about 1 %, of both roundings 3 %");
		}
	}
}

/* What T5-XXL takes, by the counting of weights: 19 GB in f32, and no more than 5.2 GB so. */
static void memory_of_a_large_encoder(void)
{
	static const struct smalti_t5_config xxl = {.layers = 24,
						    .vocabulary = 32128,
						    .width = 4096,
						    .heads = 64,
						    .head_dim = 64,
						    .inner = 4096,
						    .ff_width = 10240,
						    .buckets = 32,
						    .max_distance = 128,
						    .norm_eps = 1e-6,
						    .eos_id = 1};
	for (int int8 = 0; int8 < 2; int8++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_inventory inventory = {NULL, 0};
		struct smalti_checkpoint *checkpoint =
		    smalti_checkpoint_record(&inventory, SMALTI_F32, &error);
		checkpoint->wants_int8 = int8;
		struct smalti_text_encoder *t5 = smalti_t5_new(NULL, &xxl, checkpoint, SMALTI_F32, &error);
		SUCCEEDS(t5 ? 0 : -1, &error, "encoder");
		const double bytes = (double)smalti_weights_read_bytes(t5->weights);
		CHECK(int8 ? bytes < 5.2e9 : bytes > 19e9, "bytes");
		printf("\n    T5-XXL %s: %.2f GB", int8 ? "int8" : "f32", bytes / 1e9);
		smalti_text_encoder_free(t5);
		smalti_checkpoint_close(checkpoint);
		smalti_inventory_free(&inventory);
	}
}

enum { SIDE = 16, CHANNELS = 4, CAPTION = 4 };

static void denoise(const char *component, bool w8a8, const float *x, const float *text, float timestep,
		    float *v)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(component, SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, component);
	checkpoint->wants_w8a8 = w8a8;
	SUCCEEDS(smalti_transformer_config_open(component, checkpoint, &config, &error), &error, component);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_denoiser *dit = smalti_dit_new(task_group, &config, checkpoint, SMALTI_F32, &error);
	SUCCEEDS(dit ? 0 : -1, &error, component);
	SUCCEEDS(stage_dit(session, dit, x, SIDE, SIDE, timestep, text, CAPTION, 16, 8, v, &error), &error,
		 component);
	smalti_denoiser_free(dit);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

/* A transformer is the same whichever of the two formats its tensors lie in. */
static void transformer_of_gguf(void)
{
	static float x[CHANNELS * SIDE * SIDE], text[CAPTION * WIDTH], v[2][2 * CHANNELS * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	char directory[1024], path[512];
	size_t length;
	snprintf(directory, sizeof(directory), "%s", test_data("golden/transformer"));
	struct smalti_safetensors *file =
	    golden_open("golden/transformer/diffusion_pytorch_model.safetensors");
	char *config =
	    smalti_file_read(test_data("golden/transformer/config.json"), 1 << 16, &length, &error);
	snprintf(path, sizeof(path), "%s", test_file("transformer.gguf"));
	gguf_write(path, file->tensors, file->count, "pixart", "pixart.config", config);
	test_fill(x, COUNT(x), 0.7, 0.1);
	test_fill(text, COUNT(text), 0.3, 0.2);
	denoise(directory, false, x, text, 500, v[0]);
	denoise(path, false, x, text, 500, v[1]);
	golden_near(v[1], v[0], COUNT(v[0]), 5e-6, "GGUF");
	free(config);
	smalti_safetensors_close(file);
}

/* One of which some matrices are Q8_0, against diffusers with the same values. */
static void transformer_of_q8_0(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char path[512];
	size_t length;
	int64_t t;
	static float v[2 * CHANNELS * SIDE * SIDE];
	struct smalti_safetensors *reference = golden_open("golden/gguf/dequantised.safetensors"),
				  *file =
				      golden_open("golden/transformer-2/diffusion_pytorch_model.safetensors");
	char *config =
	    smalti_file_read(test_data("golden/transformer-2/config.json"), 1 << 16, &length, &error);
	for (int64_t i = 0; i < file->count; i++) {
		struct smalti_tensor_view *view = &file->tensors[i];
		if (!strstr(view->name, ".ff.net.2.weight"))
			continue;
		float *values = malloc((size_t)smalti_tensor_elements(view) * sizeof(*values));
		smalti_tensor_values(view, 0, view->shape[0], values);
		view->data = gguf_q8_0(values, smalti_tensor_elements(view));
		view->coding = &smalti_gguf_type(8)->coding;
		view->bytes = smalti_tensor_row_bytes(view, view->shape[0]);
		free(values);
	}
	snprintf(path, sizeof(path), "%s", test_file("q8_0.gguf"));
	gguf_write(path, file->tensors, file->count, "pixart", "pixart.config", config);
	memcpy(&t, smalti_safetensors_find(reference, "dit.t")->data, sizeof(t)); /* as ids */
	denoise(path, false, smalti_safetensors_find(reference, "dit.x")->data,
		smalti_safetensors_find(reference, "dit.text")->data, (float)t, v);
	const float *expected = smalti_safetensors_find(reference, "dit.out")->data;
	printf("\n    Q8_0: %.1e of the largest",
	       test_max_error(v, expected, COUNT(v)) / test_max_abs(expected, COUNT(v)));
	golden_near(v, expected, COUNT(v), 2e-5, "Q8_0");
	for (int64_t i = 0; i < file->count; i++)
		if (file->tensors[i].coding)
			free((void *)file->tensors[i].data);
	free(config);
	smalti_safetensors_close(file);
	smalti_safetensors_close(reference);
}

/* A transformer whose blocks are 8-bit rows stays near the one that they were made of; with products of
 * integers it need not have been written so. */
static void transformer_of_8_bits(void)
{
	static float x[CHANNELS * SIDE * SIDE], text[CAPTION * WIDTH], v[5][2 * CHANNELS * SIDE * SIDE];
	static const char *const kinds[] = {[1] = "int8", [2] = "w8a8", [4] = "fp8"};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_quantize_result result;
	char source[1024], target[512], fp8[512];
	snprintf(source, sizeof(source), "%s", test_data("golden/transformer"));
	const char *scratch = test_scratch();
	snprintf(target, sizeof(target), "%s/int8", scratch);
	snprintf(fp8, sizeof(fp8), "%s/fp8", scratch);
	SUCCEEDS(smalti_quantize(source, target, NULL, SMALTI_QUANTIZE_INT8, &result, &error), &error,
		 "quantise");
	SUCCEEDS(smalti_quantize(source, fp8, NULL, SMALTI_QUANTIZE_FP8, &result, &error), &error,
		 "quantise");
	test_fill(x, COUNT(x), 0.7, 0.1);
	test_fill(text, COUNT(text), 0.3, 0.2);
	denoise(source, false, x, text, 500, v[0]);
	denoise(target, false, x, text, 500, v[1]);
	denoise(source, true, x, text, 500, v[2]);
	denoise(target, true, x, text, 500, v[3]);
	denoise(fp8, false, x, text, 500, v[4]);
	golden_near(v[3], v[2], COUNT(v[0]), 2e-2,
		    "w8a8 of both files"); /* devices may round inputs otherwise */
	for (int i = 1; i < COUNT(kinds); i++) {
		const double far = test_max_error(v[i], v[0], COUNT(v[0])) / test_max_abs(v[0], COUNT(v[0]));
		if (kinds[i])
			printf("\n    %s: %.1e of the largest", kinds[i], far);
		CHECK(far > 1e-5 && far < (i == 4 ? 0.04 : 0.02), "near");
	}
}

static const struct smalti_tensor_view *of_case(const struct smalti_safetensors *file, const char *name,
						const char *part)
{
	char text[64];
	snprintf(text, sizeof(text), "%s.%s", name, part);
	return smalti_safetensors_find(file, text);
}

/* Multiplies a case of the reference, on a device if there is one, by rows of weights, and compares. */
static void multiply_case(const struct smalti_safetensors *file, const char *name, const char *expected,
			  const void *weights, enum smalti_dtype dtype, bool rounds)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_tensor_view *x = of_case(file, name, "x"), *bias = of_case(file, name, "bias"),
					*result = of_case(file, name, expected);
	const int64_t rows = x->shape[0], in = x->shape[1], out = result->shape[1];
	const int64_t row_bytes = smalti_raw_stride(dtype, in) * smalti_dtype_bytes(dtype);
	float *values = golden_values(result), *y = calloc((size_t)(rows * out), sizeof(*y));
	struct smalti_task_group *task_group = smalti_task_group_new(session, "product", 0, &error);
	const struct matmul_raw_buffers buffers = {
	    .x = smalti_tile_upload(task_group, rows, in * 4, x->data),
	    .part0 = smalti_tile_upload(task_group, out, row_bytes, weights),
	    .bias = bias ? smalti_tile_upload(task_group, 1, out * 4, bias->data) : NULL,
	    .y = smalti_tile_new(task_group, rows, out * 4)};
	const struct matmul_raw_arguments arguments = {.matmul = {.rows = rows, .in = in, .out = out},
						       .dtype = {dtype},
						       .part_out = {out},
						       .rounds_x = rounds};
	smalti_task_group_place(task_group, smalti_session_place_count(session) > 1 ? 1 : SMALTI_ANYWHERE);
	smalti_insert_matmul_raw(task_group, &buffers, &arguments);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	smalti_insert(deliver, task_group, (.x = buffers.y), .count = rows * out, .sink = smalti_copy_floats,
		      .user = y);
	smalti_tile_release(buffers.x);
	smalti_tile_release(buffers.part0);
	smalti_tile_release(buffers.bias);
	smalti_tile_release(buffers.y);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, name);
	smalti_task_group_free(task_group);
	golden_near(y, values, rows * out, 5e-6, name);
	free(values);
	free(y);
}

/* Multiplies a case by 8-bit rows, and by integers; not every case has each form. */
static void multiply_rows8(const struct smalti_safetensors *file, const char *name, const char *form,
			   enum smalti_dtype dtype)
{
	char part[32];
	snprintf(part, sizeof(part), "%s.q", form);
	const struct smalti_tensor_view *q = of_case(file, name, part);
	snprintf(part, sizeof(part), "%s.scale", form);
	const struct smalti_tensor_view *scale = of_case(file, name, part);
	if (!q)
		return;
	const int64_t in = q->shape[1], out = q->shape[0], stride = smalti_rows8_stride(in);
	float *scales = scale ? golden_values(scale) : NULL;
	char *weights = calloc((size_t)out, (size_t)stride);
	for (int64_t o = 0; o < out; o++) {
		const float factor = scale ? scales[o % smalti_tensor_elements(scale)] : 1;
		memcpy(weights + o * stride, (const char *)q->data + o * in, (size_t)in);
		memcpy(weights + o * stride + smalti_rows8_scale_at(in), &factor, sizeof(factor));
	}
	snprintf(part, sizeof(part), "%s.y", form);
	multiply_case(file, name, part, weights, dtype, false);
	if (dtype == SMALTI_I8)
		multiply_case(file, name, "w8a8.y", weights, dtype, true);
	free(scales);
	free(weights);
}

/* Multiplies a case by the values of a form that is decoded where it is read; not every case has each. */
static void multiply_decoded(const struct smalti_safetensors *file, const char *name, const char *form,
			     const struct smalti_coding *coding)
{
	char part[32];
	snprintf(part, sizeof(part), "%s.q", form);
	const struct smalti_tensor_view *codes = of_case(file, name, part);
	snprintf(part, sizeof(part), "%s.scale", form);
	const struct smalti_tensor_view *scale = of_case(file, name, part), *w = of_case(file, name, "w");
	if (!codes)
		return;
	struct smalti_tensor_view view = *w;
	view.usable = false;
	view.coding = coding;
	view.data = codes->data;
	view.bytes = codes->bytes;
	if (scale)
		view.scale = (struct smalti_tensor_scale){scale->data, scale->shape[0] > 1, 1};
	float *weights = calloc((size_t)smalti_tensor_elements(w), sizeof(*weights));
	smalti_tensor_values(&view, 0, w->shape[0], weights);
	snprintf(part, sizeof(part), "%s.w", form);
	const struct smalti_tensor_view *values = of_case(file, name, part);
	CHECK(!values || memcmp(weights, values->data, (size_t)values->bytes) == 0, part);
	snprintf(part, sizeof(part), "%s.y", form);
	multiply_case(file, name, part, weights, SMALTI_F32, false);
	free(weights);
}

static void products_are_the_references(void)
{
	static const char *const cases[] = {"one", "odd", "prime", "dit", "blocks", "outliers", "ties"};
	struct smalti_safetensors *file = golden_open("golden/quant/linear.safetensors");
	const struct {
		const char *name;
		const struct smalti_coding *coding;
	} forms[] = {{"e4m3", &smalti_coding_e4m3},
		     {"e4m3-row", &smalti_coding_e4m3},
		     {"e5m2", &smalti_coding_e5m2},
		     {"q8_0", &smalti_gguf_type(8)->coding},
		     {"q4_0", &smalti_gguf_type(2)->coding}};
	for (int i = 0; i < COUNT(cases); i++) {
		multiply_rows8(file, cases[i], "int8", SMALTI_I8);
		for (int f = 0; f < COUNT(forms); f++) {
			multiply_decoded(file, cases[i], forms[f].name, forms[f].coding);
			if (smalti_is_rows8(forms[f].coding->rows8))
				multiply_rows8(file, cases[i], forms[f].name, forms[f].coding->rows8);
		}
	}
	smalti_safetensors_close(file);
}

static const struct test tests[] = {
    {"products", products_are_the_references},
    {"text encoders of 8 bits", text_encoders_of_8_bits},
    {"text encoders of GGUF", text_encoders_of_gguf},
    {"text encoder in int8", text_encoder_in_int8},
    {"memory of a large encoder", memory_of_a_large_encoder},
    {"transformer of GGUF", transformer_of_gguf},
    {"transformer of Q8_0", transformer_of_q8_0},
    {"transformer of 8 bits", transformer_of_8_bits},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 2);
	const int status = test_main("coded weights", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
