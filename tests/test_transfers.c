/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves between memories when the transformer's tokens are distributed over two devices: what the
 * plan says and no more.
 */
#include "codelets/codelets.h"
#include "driver.h"
#include "embedded.h"
#include "graphs/diffusion.h"
#include "harness.h"
#include "jobs/model.h"
#include "rt/session.h"
#include "rt/transfers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, TEXT_TOKENS = 9, FEW_STEPS = 2, MANY_STEPS = 10, MEASUREMENTS = 4 };

static struct smalti_session *session;
static struct smalti_model *model;

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

static struct smalti_cross_cache *caption(struct smalti_task_group *task_group, double phase)
{
	const int64_t width = model->denoiser->text_width;
	float text[TEXT_TOKENS * 4096];
	test_fill(text, TEXT_TOKENS * width, 0.07, phase);
	struct smalti_tile *hidden =
	    smalti_tile_upload(task_group, TEXT_TOKENS, width * (int64_t)sizeof(float), text);
	hidden->owner = 0; /* what is made of it is made on the CPU, in every run */
	struct smalti_cross_cache *cache =
	    model->denoiser->functions->cross_cache(model->denoiser, task_group, hidden, TEXT_TOKENS);
	smalti_tile_release(hidden);
	return cache;
}

/* Bytes that went to devices. */
static double to_devices(void)
{
	static struct smalti_transfer transfers[SMALTI_MOST_LINKS];
	double bytes = 0;
	const int count = smalti_transfers_take(transfers);
	for (int i = 0; i < count; i++)
		bytes += transfers[i].to != 0 ? (double)transfers[i].bytes : 0;
	return bytes;
}

/* Denoises with half of the tokens on each device; what went to them, in bytes. */
static double denoise(int64_t steps, float *latents)
{
	static const double halves[3] = {0, 1, 1};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_sampler *sampler = smalti_sampler_new(&model->scheduler, steps, &error);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "image", 0, &error);
	struct smalti_diffusion diffusion = {
	    .sampler = sampler,
	    .height = SIDE,
	    .width = SIDE,
	    .vae_factor = smalti_model_factor(model),
	    .band_tokens = 64,
	    .shares = halves,
	    .seed = 7,
	    .images = 1,
	    .guidance = 4.5f,
	    .caches = {caption(task_group, 0.1), caption(task_group, 0.5)},
	    .cache_count = 2,
	};
	to_devices();
	struct smalti_tile *planes = smalti_diffuse(model->denoiser, task_group, &diffusion);
	smalti_insert(deliver, task_group, (.x = planes), .count = model->denoiser->in_channels * SIDE * SIDE,
		      .sink = keep, .user = latents);
	smalti_tile_release(planes);
	for (int i = 0; i < 2; i++)
		model->denoiser->functions->release_cross_cache(diffusion.caches[i]);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "denoising");
	smalti_task_group_free(task_group);
	free(sampler);
	return to_devices();
}

/* A step's: each device reads the keys and values that the other has made, for each block of each branch (the
 * first self-attention is common to both), and the step's modulation, which may be made on either or on
 * neither. */
static void check_step(double measured)
{
	const struct smalti_transformer_config *c = &model->transformer;
	const double tokens = SIDE / (double)c->patch_size * SIDE / (double)c->patch_size;
	const double width = (double)c->width * sizeof(float), blocks = (double)c->layers;
	const double keys = (2 * (blocks - 1) + 1) * tokens * 2 * width;
	const double modulation = 2 * (6 * blocks + 2) * width;
	printf("\n    to devices each step: %.0f bytes, keys and values %.0f, modulation up to %.0f",
	       measured, keys, modulation);
	CHECK(measured >= 0.98 * keys, "keys and values of the other device");
	CHECK(measured <= 1.02 * keys + modulation, "and nothing else");
}

static void only_what_the_plan_says(void)
{
	static float first[4 * SIDE * SIDE], again[4 * SIDE * SIDE];
	const double cold = denoise(FEW_STEPS, first);
	double few = denoise(FEW_STEPS, again), step = (double)INFINITY;
	for (int i = 0; i < MEASUREMENTS;
	     i++) { /* what runs anywhere may meet a device without its weights */
		few = denoise(FEW_STEPS, again);
		step = fmin(step, (denoise(MANY_STEPS, first) - few) / (MANY_STEPS - FEW_STEPS));
	}
	check_step(step);
	const double weights = (double)smalti_weights_file_bytes(model->denoiser->weights);
	printf("\n    weights: %.0f bytes at first, %.0f in the file", cold - few, weights);
	CHECK(cold - few > weights && cold - few < 4.1 * weights, "f32 weights go to each device once");
	const double apart = test_max_error(first, again, model->denoiser->in_channels * SIDE * SIDE);
	CHECK(apart > 0 && isfinite(apart), "more steps, another image");
}

static void closing(void)
{
	embedded_close(session, model);
}

static const struct test tests[] = {
    {"two devices", only_what_the_plan_says},
    {"closing", closing},
};

int main(void)
{
	test_unwind_with_care();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options = {.cpus = 1, .policy = "dmda"};
	test_ask_for(&options, 2);
	/* What is idle writes nothing back unasked. */
	setenv("STARPU_MINIMUM_CLEAN_BUFFERS", "0", 0);
	setenv("STARPU_TARGET_CLEAN_BUFFERS", "0", 0);
	session = smalti_session_open(&options, &error);
	if (!session) {
		printf("skipped: %s\n", error.message);
		return 77;
	}
	model = embedded_open(session);
	return test_main("transfers", tests, COUNT(tests));
}
