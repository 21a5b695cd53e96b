/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages at the published sizes, on weights by formula (bench/fill.h, f16), against outputs of the
 * reference implementation on the same: two layers of T5-XXL, the whole transformer, the SDXL VAE. */
#include "bench/geometry.h"
#include "bench/weights.h"
#include "checkpoint/checkpoint.h"
#include "harness.h"
#include "sanitized.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, T5_LAYERS = 2 };

static const double tolerance = 2e-5; /* of the largest absolute value */

static struct smalti_session *session;
static struct smalti_safetensors *golden;

static const struct smalti_tensor_view *tensor(const char *name)
{
	const struct smalti_tensor_view *view = smalti_safetensors_find(golden, name);
	CHECK(view, name);
	return view;
}

static void compare(const char *name, const float *found)
{
	const struct smalti_tensor_view *view = tensor(name);
	const int64_t count = view->bytes / (int64_t)sizeof(float);
	float *expected = malloc((size_t)view->bytes);
	memcpy(expected, view->data, (size_t)view->bytes);
	const double relative = test_max_error(found, expected, count) / test_max_abs(expected, count);
	char what[96];
	snprintf(what, sizeof(what), "%s: %.2e of the largest, %.0e allowed", name, relative, tolerance);
	CHECK(relative <= tolerance, what);
	printf("\n    %s", what);
	free(expected);
}

/* One component of the geometry with its configuration; its files have no names any more. */
struct component {
	cJSON *config;
	struct smalti_checkpoint *checkpoint;
	struct smalti_task_group *task_group;
};

static struct component open_component(enum smalti_component kind)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_advance nobody = {0};
	const char *stem = smalti_component_names[kind].stem, *directory = test_scratch();
	struct component c = {
	    .config = smalti_geometry_config(SMALTI_SIGMA_512, kind, T5_LAYERS, SMALTI_F16, &error)};
	struct smalti_inventory inventory;
	SUCCEEDS(smalti_component_inventory(kind, c.config, SMALTI_F16, &inventory, &error), &error, "list");
	SUCCEEDS(smalti_weights_write(directory, stem, &inventory, SMALTI_SHARD_BYTES, &nobody, &error),
		 &error, "write");
	smalti_inventory_free(&inventory);
	c.checkpoint = smalti_checkpoint_open(directory, stem, NULL, &error);
	c.task_group = smalti_task_group_new(session, "weights", 0, &error);
	SUCCEEDS(c.checkpoint && c.task_group ? 0 : -1, &error, "open");
	test_scratch(); /* gigabytes: remove them before anything can go wrong */
	return c;
}

static void close_component(struct component *c)
{
	smalti_task_group_free(c->task_group);
	smalti_checkpoint_close(c->checkpoint);
	cJSON_Delete(c->config);
}

static void t5(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	struct component c = open_component(SMALTI_TEXT_ENCODER);
	SUCCEEDS(smalti_t5_config_parse(c.config, &config, &error), &error, "config");
	struct smalti_text_encoder *model =
	    smalti_t5_new(c.task_group, &config, c.checkpoint, SMALTI_F32, &error);
	SUCCEEDS(model ? 0 : -1, &error, "t5");
	const struct smalti_tensor_view *view = tensor("t5.ids");
	const int64_t tokens = view->shape[1];
	int32_t *ids = malloc((size_t)tokens * sizeof(*ids));
	memcpy(ids, view->data, (size_t)tokens * sizeof(*ids));
	float *y = malloc((size_t)(tokens * config.width) * sizeof(*y));
	SUCCEEDS(stage_t5(session, model, ids, tokens, y, &error), &error, "encode");
	compare("t5.out", y);
	free(y);
	free(ids);
	smalti_text_encoder_free(model);
	close_component(&c);
}

static void dit(void)
{
	enum { BAND_TOKENS = 96 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	struct component c = open_component(SMALTI_TRANSFORMER);
	SUCCEEDS(smalti_transformer_config_parse(c.config, &config, &error), &error, "config");
	struct smalti_denoiser *model =
	    smalti_dit_new(c.task_group, &config, c.checkpoint, SMALTI_F32, &error);
	SUCCEEDS(model ? 0 : -1, &error, "dit");
	const struct smalti_tensor_view *x = tensor("dit.x"), *text = tensor("dit.text");
	const int64_t height = x->shape[2], width = x->shape[3];
	int64_t timestep; /* I64, which checkpoints do not have */
	memcpy(&timestep, tensor("dit.t")->data, sizeof(timestep));
	float *v = malloc((size_t)(config.out_channels * height * width) * sizeof(*v));
	SUCCEEDS(stage_dit(session, model, x->data, height, width, (float)timestep, text->data,
			   text->shape[1], BAND_TOKENS, 8, v, &error),
		 &error, "forward");
	compare("dit.out", v);
	free(v);
	smalti_denoiser_free(model);
	close_component(&c);
}

static void vae_decode(void)
{
	enum { BAND_ROWS = 5 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_config config;
	struct component c = open_component(SMALTI_VAE);
	SUCCEEDS(smalti_vae_config_parse(c.config, &config, &error), &error, "config");
	config.scaling_factor = 1; /* the golden latents are divided already */
	struct smalti_vae_net *model =
	    smalti_vae_net_new(SMALTI_VAE_DECODE, c.task_group, &config, c.checkpoint, SMALTI_F32, &error);
	SUCCEEDS(model ? 0 : -1, &error, "vae");
	const struct smalti_tensor_view *z = tensor("vae.decode.in");
	float *image = malloc((size_t)tensor("vae.decode.out")->bytes);
	SUCCEEDS(stage_decode(session, model, z->data, z->shape[2], z->shape[3], BAND_ROWS, image, &error),
		 &error, "decode");
	compare("vae.decode.out", image);
	free(image);
	smalti_vae_net_free(model);
	close_component(&c);
}

/* Planes [3, height, width] as pixels. */
static float *pixels_of(const struct smalti_tensor_view *planes)
{
	const int64_t plane = planes->shape[2] * planes->shape[3];
	float *pixels = malloc((size_t)planes->bytes);
	for (int64_t i = 0; i < 3 * plane; i++)
		memcpy(&pixels[i],
		       (const char *)planes->data + (i % 3 * plane + i / 3) * (int64_t)sizeof(float),
		       sizeof(*pixels));
	return pixels;
}

static void vae_encode(void)
{
	enum { BAND_ROWS = 2 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_config config;
	struct component c = open_component(SMALTI_VAE);
	SUCCEEDS(smalti_vae_config_parse(c.config, &config, &error), &error, "config");
	struct smalti_vae_net *model =
	    smalti_vae_net_new(SMALTI_VAE_ENCODE, c.task_group, &config, c.checkpoint, SMALTI_F32, &error);
	SUCCEEDS(model ? 0 : -1, &error, "vae");
	const struct smalti_tensor_view *moments = tensor("vae.encode.moments");
	float *pixels = pixels_of(tensor("vae.encode.in"));
	float *planes = malloc((size_t)moments->bytes);
	SUCCEEDS(stage_encode(session, model, pixels, moments->shape[2], moments->shape[3], BAND_ROWS, planes,
			      &error),
		 &error, "encode");
	const int64_t count = moments->bytes / (int64_t)sizeof(float);
	for (int64_t i = count / 2; i < count; i++) /* the reference kept logarithms of variances */
		planes[i] = 2 * logf(planes[i]);
	compare("vae.encode.moments", planes);
	free(planes);
	free(pixels);
	smalti_vae_net_free(model);
	close_component(&c);
}

static const struct test tests[] = {
    {"T5-XXL, two layers", t5},
    {"transformer", dit},
    {"VAE decoder", vae_decode},
    {"VAE encoder", vae_encode},
};

TEST_PROGRAM()
{
	if (SANITIZED) {
		printf("skipped: with sanitizers the arithmetic takes too long\n");
		return SKIPPED;
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	golden = smalti_safetensors_open(test_data("golden/full-geometry.safetensors"), &error);
	if (!golden) {
		fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	session = stage_session(NULL, 0);
	int status = test_main("published sizes", tests, COUNT(tests));
	smalti_safetensors_close(golden);
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
