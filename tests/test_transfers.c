/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves between memories when the transformer is spread over devices: what the strategy says and no
 * more.
 */
#include "codelets/codelets.h"
#include "embedded.h"
#include "graphs/diffusion.h"
#include "graphs/dit_traffic.h"
#include "harness.h"
#include "jobs/model.h"
#include "moved.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIDE = 16,
	TEXT_TOKENS = 9,
	BAND_TOKENS = 16,
	FEW_STEPS = 3,
	MANY_STEPS = 7,
	PLACES = 4,
	FEW_BYTES = 2048 /* once, of tasks at the ends that run anywhere */
};

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

/* Denoises under a strategy; what went to each device. */
static void denoise(const struct smalti_strategy *strategy, int64_t steps, float *latents,
		    double bytes[PLACES])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_sampler *sampler = smalti_sampler_new(&model->scheduler, steps, &error);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "image", 0, &error);
	struct smalti_diffusion diffusion = {
	    .sampler = sampler,
	    .height = SIDE,
	    .width = SIDE,
	    .vae_factor = smalti_model_factor(model),
	    .band_tokens = BAND_TOKENS,
	    .strategy = strategy,
	    .seed = 7,
	    .images = 1,
	    .guidance = 4.5f,
	    .caches = {caption(task_group, 0.1), caption(task_group, 0.5)},
	    .cache_count = 2,
	};
	moved_bytes(PLACES, bytes);
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
	moved_bytes(PLACES, bytes);
}

/* Of one step, as the strategy says. */
static struct smalti_traffic planned(const struct smalti_strategy *strategy, int place)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t columns = SIDE / model->denoiser->patch_size;
	struct smalti_tokens tokens;
	SUCCEEDS(smalti_tokens_cut(&tokens, strategy, columns * columns, columns, BAND_TOKENS, &error),
		 &error, "tokens");
	const struct smalti_traffic traffic = smalti_dit_traffic(
	    model->denoiser, &tokens, (const int64_t[]){TEXT_TOKENS, TEXT_TOKENS}, 2, place);
	smalti_tokens_free(&tokens);
	return traffic;
}

static void compare(const char *name, const struct smalti_strategy *strategy, const double measured[PLACES])
{
	char what[160];
	for (int place = 1; place < PLACES; place++) {
		const struct smalti_traffic plan = planned(strategy, place);
		const double expected = smalti_traffic_bytes(&plan);
		snprintf(what, sizeof(what), "%s: %.0f bytes to device %d each step, %.0f planned", name,
			 measured[place], place, expected);
		printf("\n    %s", what);
		CHECK(fabs(measured[place] - expected) <= 0.02 * expected + FEW_BYTES, what);
	}
}

static void only_what_the_plan_says(void)
{
	static const char *const names[] = {"patch2",    "patch3",     "ring3",   "ulysses2",
					    "ulysses3",  "tensor2",    "tensor3", "cfg2",
					    "pipeline2", "displaced3", "masked2"};
	static float first[4 * SIDE * SIDE], again[4 * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	model = embedded_open(session);
	for (int i = 0; i < COUNT(names); i++) {
		double few[PLACES], many[PLACES], step[PLACES];
		struct smalti_strategy strategy;
		SUCCEEDS(smalti_strategy_read(&strategy, names[i], NULL, PLACES, &error), &error, names[i]);
		denoise(&strategy, FEW_STEPS, again, few); /* weights come */
		denoise(&strategy, FEW_STEPS, again, few);
		denoise(&strategy, MANY_STEPS, first, many);
		for (int place = 0; place < PLACES; place++)
			step[place] = (many[place] - few[place]) / (MANY_STEPS - FEW_STEPS);
		compare(names[i], &strategy, step);
		smalti_strategy_free(&strategy);
	}
	const double apart = test_max_error(first, again, model->denoiser->in_channels * SIDE * SIDE);
	CHECK(apart > 0 && isfinite(apart), "more steps, another image");
	embedded_close(session, model);
}

/* Each device fetches the weights once, or its shard of them. */
static void weights_come_once(void)
{
	static const struct {
		const char *name;
		double least, most; /* of the weights as f32; captions take theirs on the CPU */
	} cases[] = {{"patch2", 0.75, 0.9}, {"tensor2", 0.3, 0.5}};
	static float latents[4 * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int i = 0; i < COUNT(cases); i++) {
		double cold[PLACES], warm[PLACES];
		char what[120];
		struct smalti_strategy strategy;
		model = embedded_open(session);
		const double weights = (double)smalti_weights_file_bytes(model->denoiser->weights);
		SUCCEEDS(smalti_strategy_read(&strategy, cases[i].name, NULL, PLACES, &error), &error,
			 cases[i].name);
		denoise(&strategy, FEW_STEPS, latents, cold);
		denoise(&strategy, FEW_STEPS, latents, warm);
		for (int place = 1; place <= 2; place++) {
			const double share = (cold[place] - warm[place]) / (2 * weights);
			snprintf(what, sizeof(what), "%s: device %d fetches %.3f of the weights",
				 cases[i].name, place, share);
			printf("\n    %s", what);
			CHECK(share >= cases[i].least && share <= cases[i].most, what);
		}
		smalti_strategy_free(&strategy);
		smalti_model_close(model);
	}
}

static const struct test tests[] = {
    {"weights come once", weights_come_once},
    {"only what the plan says", only_what_the_plan_says},
};

int main(void)
{
	test_unwind_with_care();
	session = moved_session(PLACES - 1);
	if (!session)
		return 77;
	return test_main("transfers", tests, COUNT(tests));
}
