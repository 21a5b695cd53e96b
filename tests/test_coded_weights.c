/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose files have weights of 8 bits, against the reference's outputs. */
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

static void encode(const char *directory, const int32_t *ids, int64_t tokens, bool streamed, float *y)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &config, &error),
		 &error, "configuration");
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(directory, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, directory);
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
	return directory;
}

static void text_encoders_of_8_bits(void)
{
	static const char *const names[] = {"t5-fp8", "t5-fp8-scaled", "t5-llm-int8"};
	struct smalti_safetensors *file = golden_open("golden/quant/t5.safetensors");
	int32_t ids[MOST_TOKENS];
	const int64_t tokens = read_ids(file, ids);
	for (int i = 0; i < COUNT(names); i++) {
		float y[MOST_TOKENS * WIDTH], streamed[MOST_TOKENS * WIDTH];
		char text[96];
		snprintf(text, sizeof(text), "golden/quant/%s.safetensors", names[i]);
		const char *directory = directory_of(text);
		encode(directory, ids, tokens, false, y);
		encode(directory, ids, tokens, true, streamed);
		CHECK(memcmp(y, streamed, (size_t)(tokens * WIDTH) * sizeof(float)) == 0, "streamed");
		snprintf(text, sizeof(text), "%s.out", names[i]);
		float *expected = golden_values(smalti_safetensors_find(file, text));
		golden_near(y, expected, tokens * WIDTH, 2e-5, names[i]);
		free(expected);
	}
	smalti_safetensors_close(file);
}

static const struct test tests[] = {
    {"text encoders of 8 bits", text_encoders_of_8_bits},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 2);
	const int status = test_main("coded weights", tests, COUNT(tests));
	smalti_session_close(session, NULL);
	return status;
}
