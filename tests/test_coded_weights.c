/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose files have weights of 8 bits, against the reference's outputs. */
#include "gguf_file.h"
#include "golden.h"
#include "harness.h"
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

static void encode(const char *component, const int32_t *ids, int64_t tokens, bool streamed, float *y)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(component, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, component);
	SUCCEEDS(smalti_t5_config_open(component, checkpoint, &config, &error), &error, "configuration");
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_text_encoder *t5 = smalti_t5_new(task_group, &config, checkpoint, SMALTI_F32, &error);
	SUCCEEDS(t5 ? 0 : -1, &error, "encoder");
	if (streamed)
		t5->functions->stream(t5);
	SUCCEEDS(stage_t5(session, t5, ids, tokens, y, &error), &error, "encode");
	smalti_text_encoder_free(t5);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
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

/* Compares the states of a component, streamed or not, with NAME.out of the file. */
static void check_states(const char *component, const struct smalti_safetensors *file, const char *name)
{
	float y[MOST_TOKENS * WIDTH], streamed[MOST_TOKENS * WIDTH];
	int32_t ids[MOST_TOKENS];
	char text[96];
	const int64_t tokens = read_ids(file, ids);
	encode(component, ids, tokens, false, y);
	encode(component, ids, tokens, true, streamed);
	CHECK(memcmp(y, streamed, (size_t)(tokens * WIDTH) * sizeof(float)) == 0, "streamed");
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
		check_states(directory_of(text), file, names[i]);
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
		check_states(path, file, names[i]);
	}
	smalti_safetensors_close(file);
}

enum { SIDE = 16, CHANNELS = 4, CAPTION = 4 };

static void denoise(const char *component, const float *x, const float *text, float timestep, float *v)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(component, SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, component);
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
	denoise(directory, x, text, 500, v[0]);
	denoise(path, x, text, 500, v[1]);
	CHECK(memcmp(v[0], v[1], sizeof(v[0])) == 0, "bits");
	free(config);
	smalti_safetensors_close(file);
}

static const struct test tests[] = {
    {"text encoders of 8 bits", text_encoders_of_8_bits},
    {"text encoders of GGUF", text_encoders_of_gguf},
    {"transformer of GGUF", transformer_of_gguf},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 2);
	const int status = test_main("coded weights", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
