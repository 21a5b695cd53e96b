/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the latents of a denoising come from: each image's part of the seed's stream of noise
 * (docs/reference.md 8.1), or what was given. The steps are made so that the model's output does not matter.
 */
#include "codelets/codelets.h"
#include "embedded.h"
#include "graphs/diffusion.h"
#include "harness.h"
#include "jobs/model.h"
#include "samplers/noise.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 4, HEIGHT = 4, WIDTH = 6, VALUES = CHANNELS * HEIGHT * WIDTH, IMAGES = 3, STEPS = 2 };

static struct smalti_model *model;

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

static void diffuse(const struct smalti_diffusion *wanted, float *latents)
{
	static const float text[1][128] = {{0}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(model->session, "diffusion", 0, &error);
	smalti_task_group_depends_on(task_group, model->task_group);
	struct smalti_tile *hidden = smalti_tile_upload(task_group, 1, sizeof(text), text);
	struct smalti_diffusion diffusion = *wanted;
	diffusion.height = HEIGHT;
	diffusion.width = WIDTH;
	diffusion.vae_factor = 8;
	diffusion.band_tokens = 4;
	diffusion.strategy = &smalti_strategy_none;
	diffusion.caches[0] = model->denoiser->functions->cross_cache(model->denoiser, task_group, hidden, 1);
	diffusion.cache_count = 1;
	struct smalti_tile *result = smalti_diffuse(model->denoiser, task_group, &diffusion);
	smalti_insert(deliver, task_group, (.x = result), .count = VALUES, .sink = keep, .user = latents);
	smalti_tile_release(result);
	model->denoiser->functions->release_cross_cache(diffusion.caches[0]);
	smalti_tile_release(hidden);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "diffuse");
	smalti_task_group_free(task_group);
}

static struct smalti_sampler *sampler_of(double initial_sigma, const struct smalti_sampler_step *step)
{
	struct smalti_sampler *sampler = calloc(1, sizeof(*sampler) + STEPS * sizeof(*step));
	if (!sampler)
		abort();
	sampler->initial_sigma = initial_sigma;
	sampler->steps = STEPS;
	for (int i = 0; i < STEPS; i++)
		sampler->step[i] = *step;
	return sampler;
}

static void stream(void)
{
	static const struct smalti_sampler_step keeps = {.input_scale = 1, .next = {.x = 1}},
						draws = {.input_scale = 1,
							 .next = {.noise = 1},
							 .draws_noise = true};
	static const struct {
		const char *what;
		const struct smalti_sampler_step *step;
		double initial_sigma;
		int draw; /* whose values are left at the end */
		enum smalti_dtype dtype;
	} cases[] = {
	    {"first draw", &keeps, 1, 0, SMALTI_F32},
	    {"first draw times sigma", &keeps, 4, 0, SMALTI_F16},
	    {"last step's draw", &draws, 1, STEPS, SMALTI_F32},
	    {"last step's draw in bf16", &draws, 1, STEPS, SMALTI_BF16},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int image = 0; image < IMAGES; image++) {
			struct smalti_generator generator;
			struct smalti_sampler *sampler = sampler_of(cases[i].initial_sigma, cases[i].step);
			float found[VALUES], expected[VALUES];
			smalti_generator_seed(&generator, 7);
			for (int draw = 0; draw < cases[i].draw * IMAGES + image + 1; draw++)
				smalti_randn(&generator, cases[i].dtype, VALUES, expected);
			for (int k = 0; k < VALUES; k++)
				expected[k] *= (float)cases[i].initial_sigma;
			diffuse(&(const struct smalti_diffusion){.sampler = sampler,
								 .seed = 7,
								 .image = image,
								 .images = IMAGES,
								 .noise_dtype = cases[i].dtype},
				found);
			CHECK(memcmp(found, expected, sizeof(found)) == 0, cases[i].what);
			free(sampler);
		}
}

/* Given latents are in the model's scale already. */
static void given(void)
{
	static const struct smalti_sampler_step keeps = {.input_scale = 1, .next = {.x = 1}};
	struct smalti_sampler *sampler = sampler_of(4, &keeps);
	float latents[VALUES], found[VALUES];
	test_fill(latents, VALUES, 0.3, 0.4);
	diffuse(&(const struct smalti_diffusion){.sampler = sampler, .images = 1, .latents = latents}, found);
	CHECK(memcmp(found, latents, sizeof(found)) == 0, "as they are");
	free(sampler);
}

static const struct test tests[] = {{"stream of noise", stream}, {"given latents", given}};

TEST_PROGRAM()
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = stage_session(NULL, 2);
	model = embedded_open(session);
	int status = test_main("diffusion", tests, COUNT(tests));
	smalti_model_close(model);
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
