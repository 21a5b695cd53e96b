/* SPDX-License-Identifier: Apache-2.0
 *
 * The embedded model's stages against outputs of the reference implementation. */
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "golden.h"
#include "harness.h"
#include "kernels/layout.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tolerances relative to the largest absolute value, on CPUs and devices: for f32 as the golden files state
 * them, for bf16 our own, about twice what is found; f16 has three bits more, tf32 as many as f16. */
static const struct precision {
	const char *name;
	enum smalti_dtype compute;
	double t5, dit, vae, encode;
} f32 = {"f32", SMALTI_F32, 2e-5, 5e-5, 5e-5, 5e-5}, bf16 = {"bf16", SMALTI_BF16, 1.2e-2, 1e-2, 4e-2, 6e-3},
  f16 = {"f16", SMALTI_F16, 1.2e-2 / 8, 1e-2 / 8, 4e-2 / 8, 6e-3 / 8},
  tf32 = {"tf32", SMALTI_F32, 1.2e-2 / 8, 1e-2 / 8, 4e-2 / 8, 6e-3 / 8};

static struct smalti_session *session;

static void compare(const char *kind, int number, const float *found,
		    const struct smalti_tensor_view *expected, double tolerance)
{
	const int64_t count = expected->bytes / (int64_t)sizeof(float);
	float *values = golden_values(expected);
	double relative = test_max_error(found, values, count) / test_max_abs(values, count);
	char what[96];
	snprintf(what, sizeof(what), "%s.%d: %.2e of the largest, %.0e allowed", kind, number, relative,
		 tolerance);
	CHECK(relative <= tolerance, what);
	printf("\n    %s", what);
	free(values);
}

static struct smalti_checkpoint *weights(const char *directory, const char *stem)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, stem, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, directory);
	return checkpoint;
}

static void t5(const struct precision *precision)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &config, &error),
		 &error, "t5");
	struct smalti_checkpoint *checkpoint = weights(test_model("tesserae/text_encoder"), SMALTI_STEM_T5);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_text_encoder *model =
	    smalti_t5_new(task_group, &config, checkpoint, precision->compute, &error);
	SUCCEEDS(model ? 0 : -1, &error, "t5");
	cJSON *texts = smalti_json_read(test_data("golden/tokenizer.json"), 1 << 20, &error);
	struct smalti_safetensors *file = golden_open("golden/t5.safetensors");
	int number = 0;
	for (const cJSON *text = texts->child; text; text = text->next, number++) {
		int32_t ids[300];
		int64_t count = 0;
		for (const cJSON *id = cJSON_GetObjectItem(text, "ids")->child; id; id = id->next)
			ids[count++] = id->valueint;
		float *y = malloc((size_t)(count * config.width) * sizeof(*y));
		SUCCEEDS(stage_t5(session, model, ids, count, y, &error), &error, "encode");
		const struct smalti_tensor_view *expected = golden_tensor(file, "t5", number, "");
		const int64_t stride =
		    count / expected->shape[0]; /* of the longest only some rows are kept */
		for (int64_t row = 1; row < expected->shape[0]; row++)
			memmove(y + row * config.width, y + row * stride * config.width,
				(size_t)config.width * sizeof(*y));
		compare("t5", number, y, expected, precision->t5);
		free(y);
	}
	CHECK(number == file->count, "every case was seen");
	cJSON_Delete(texts);
	smalti_safetensors_close(file);
	smalti_text_encoder_free(model);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

static void dit(const struct precision *precision, bool raw)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	SUCCEEDS(smalti_transformer_config_read(test_data("golden/transformer/config.json"), &config, &error),
		 &error, "dit");
	struct smalti_checkpoint *checkpoint =
	    weights(test_data("golden/transformer"), SMALTI_STEM_DIFFUSERS);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_denoiser *model =
	    smalti_dit_new(task_group, &config, checkpoint, precision->compute, &error);
	SUCCEEDS(model ? 0 : -1, &error, "dit");
	if (raw)
		smalti_weights_leave_raw(model->weights);
	CHECK((smalti_weights_bytes(model->weights) < smalti_weights_file_bytes(model->weights)) == raw,
	      "packed or not");
	struct smalti_safetensors *file = golden_open("golden/dit.safetensors");
	static const int64_t bands[] = {256, 7, 1};
	int number = 0;
	for (const struct smalti_tensor_view *x; (x = golden_tensor(file, "dit", number, ".x")); number++) {
		const struct smalti_tensor_view *text = golden_tensor(file, "dit", number, ".text");
		const struct smalti_tensor_view *out = golden_tensor(file, "dit", number, ".out");
		int64_t timestep; /* I64, which checkpoints do not have */
		memcpy(&timestep, golden_tensor(file, "dit", number, ".t")->data, sizeof(timestep));
		float *v = malloc((size_t)out->bytes);
		SUCCEEDS(stage_dit(session, model, x->data, x->shape[2], x->shape[3], (float)timestep,
				   text->data, text->shape[0], bands[number % 3], 8, v, &error),
			 &error, "forward");
		compare("dit", number, v, out, precision->dit);
		free(v);
	}
	CHECK(4 * number == file->count, "every case was seen");
	smalti_safetensors_close(file);
	smalti_denoiser_free(model);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

static void vae_decode(const struct precision *precision)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_config config;
	SUCCEEDS(smalti_vae_config_read(test_model("tesserae/vae/config.json"), &config, &error), &error,
		 "vae");
	config.scaling_factor = 1; /* the golden latents are divided already */
	struct smalti_checkpoint *checkpoint = weights(test_model("tesserae/vae"), SMALTI_STEM_DIFFUSERS);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_vae_net *model = smalti_vae_net_new(SMALTI_VAE_DECODE, task_group, &config, checkpoint,
							  precision->compute, &error);
	SUCCEEDS(model ? 0 : -1, &error, "vae");
	struct smalti_safetensors *file = golden_open("golden/vae_decode.safetensors");
	static const int64_t bands[] = {8, 1, 3};
	int number = 0;
	for (const struct smalti_tensor_view *z; (z = golden_tensor(file, "vae_decode", number, ".z"));
	     number++) {
		const struct smalti_tensor_view *out = golden_tensor(file, "vae_decode", number, ".out");
		float *image = malloc((size_t)out->bytes);
		SUCCEEDS(stage_decode(session, model, z->data, z->shape[2], z->shape[3], bands[number % 3],
				      image, &error),
			 &error, "decode");
		compare("vae_decode", number, image, out, precision->vae);
		free(image);
	}
	CHECK(2 * number == file->count, "every case was seen");
	smalti_safetensors_close(file);
	smalti_vae_net_free(model);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

static void vae_encode(const struct precision *precision)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_config config;
	SUCCEEDS(smalti_vae_config_read(test_model("tesserae/vae/config.json"), &config, &error), &error,
		 "vae");
	struct smalti_checkpoint *checkpoint = weights(test_model("tesserae/vae"), SMALTI_STEM_DIFFUSERS);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_vae_net *model = smalti_vae_net_new(SMALTI_VAE_ENCODE, task_group, &config, checkpoint,
							  precision->compute, &error);
	SUCCEEDS(model ? 0 : -1, &error, "vae");
	struct smalti_safetensors *file = golden_open("golden/vae_encode.safetensors");
	static const int64_t bands[] = {4, 1, 7};
	int number = 0;
	for (const struct smalti_tensor_view *u8;
	     (u8 = golden_tensor(file, "vae_encode", number, ".image_u8")); number++) {
		const struct smalti_tensor_view *expected =
		    golden_tensor(file, "vae_encode", number, ".mean_std");
		float *pixels = malloc((size_t)u8->bytes * sizeof(*pixels));
		float *planes = malloc((size_t)expected->bytes);
		smalti_from_u8(u8->bytes, u8->data, pixels);
		SUCCEEDS(stage_encode(session, model, pixels, expected->shape[2], expected->shape[3],
				      bands[number % 3], planes, &error),
			 &error, "encode");
		compare("vae_encode", number, planes, expected, precision->encode);
		free(pixels);
		free(planes);
	}
	CHECK(2 * number == file->count, "every case was seen");
	smalti_safetensors_close(file);
	smalti_vae_net_free(model);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
}

/* Of CUDA devices alone, and of a session from its first product on. */
static bool reopened_for_tf32(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (!smalti_devices_have(&session->device_counts, SMALTI_DEVICES_TF32))
		return false;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	session = stage_session(NULL, 0);
	SUCCEEDS(smalti_session_choose_tf32(session, true, &error), &error, "tf32");
	return true;
}

static void t5_f32(void)
{
	t5(&f32);
}

static void t5_f16(void)
{
	t5(&f16);
}

static void t5_bf16(void)
{
	t5(&bf16);
}

static void dit_f32(void)
{
	dit(&f32, false);
}

static void dit_f16(void)
{
	dit(&f16, false);
}

static void dit_bf16(void)
{
	dit(&bf16, false);
}

static void dit_raw_f32(void)
{
	dit(&f32, true);
}

static void dit_raw_f16(void)
{
	dit(&f16, true);
}

static void dit_raw_bf16(void)
{
	dit(&bf16, true);
}

static void vae_decode_f32(void)
{
	vae_decode(&f32);
}

static void vae_decode_f16(void)
{
	vae_decode(&f16);
}

static void vae_decode_bf16(void)
{
	vae_decode(&bf16);
}

static void vae_encode_f32(void)
{
	vae_encode(&f32);
}

static void vae_encode_f16(void)
{
	vae_encode(&f16);
}

static void vae_encode_bf16(void)
{
	vae_encode(&bf16);
}

static void t5_tf32(void)
{
	if (reopened_for_tf32())
		t5(&tf32);
}

static void dit_tf32(void)
{
	if (reopened_for_tf32())
		dit(&tf32, false);
}

static void vae_decode_tf32(void)
{
	if (reopened_for_tf32())
		vae_decode(&tf32);
}

static void vae_encode_tf32(void)
{
	if (reopened_for_tf32())
		vae_encode(&tf32);
}

static const struct test tests[] = {
    {"T5, f32", t5_f32},
    {"DiT, f32", dit_f32},
    {"VAE decoder, f32", vae_decode_f32},
    {"VAE encoder, f32", vae_encode_f32},
    {"T5, bf16", t5_bf16},
    {"DiT, bf16", dit_bf16},
    {"VAE decoder, bf16", vae_decode_bf16},
    {"VAE encoder, bf16", vae_encode_bf16},
    {"T5, f16", t5_f16},
    {"DiT, f16", dit_f16},
    {"VAE decoder, f16", vae_decode_f16},
    {"VAE encoder, f16", vae_encode_f16},
    {"DiT left raw, f32", dit_raw_f32},
    {"DiT left raw, bf16", dit_raw_bf16},
    {"DiT left raw, f16", dit_raw_f16},
    {"T5, tf32", t5_tf32},
    {"DiT, tf32", dit_tf32},
    {"VAE decoder, tf32", vae_decode_tf32},
    {"VAE encoder, tf32", vae_encode_tf32},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("golden outputs of the stages", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
