/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole runs of every scheduler, from its configuration, against diffusers': golden/samplers.json lists them,
 * golden/samplers.safetensors has x after every call of the model. The model is that of docs/reference.md
 * 9.4, its output taken as what the configuration says that it predicts.
 */
#include "base/json.h"
#include "checkpoint/config.h"
#include "golden.h"
#include "harness.h"
#include "samplers/noise.h"
#include "samplers/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4 * 4 * 4, RUNS = 62 };

static const char *text_of(const cJSON *run, const char *key)
{
	return cJSON_GetObjectItem(run, key)->valuestring;
}

static double number_of(const cJSON *run, const char *key)
{
	return cJSON_GetObjectItem(run, key)->valuedouble;
}

/* Reads the configuration of the run, as from its file. */
static struct smalti_sampler *sampler_of(const cJSON *run)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_scheduler_config config;
	cJSON *file = cJSON_GetObjectItem(run, "config");
	const cJSON *eta = cJSON_GetObjectItem(file, "eta");
	cJSON_AddStringToObject(file, "_class_name", text_of(run, "class"));
	const int status = smalti_scheduler_config_parse(file, NULL, &config, &error);
	SUCCEEDS(status, &error, text_of(run, "name"));
	config.eta = eta ? eta->valuedouble : 0;
	struct smalti_sampler *sampler =
	    status ? NULL : smalti_sampler_new(&config, (int64_t)number_of(run, "steps"), &error);
	SUCCEEDS(sampler ? 0 : -1, &error, text_of(run, "name"));
	return sampler;
}

/* Allows 5e-5 of the largest value where sigmas are on curves, whose ends torch has in f32. */
static double tolerance_of(const cJSON *run)
{
	static const char *const curves[] = {"use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas",
					     "use_lu_lambdas"};
	for (int i = 0; i < COUNT(curves); i++)
		if (cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetObjectItem(run, "config"), curves[i])))
			return 5e-5;
	return 2e-5;
}

static void check_table(const struct smalti_sampler *sampler, const cJSON *run)
{
	const char *name = text_of(run, "name");
	const cJSON *timesteps = cJSON_GetObjectItem(run, "timesteps");
	int draws = 0;
	CHECK(sampler->steps == (int64_t)number_of(run, "model_calls"), name);
	CHECK(fabs(sampler->initial_sigma / number_of(run, "init_noise_sigma") - 1) < 1e-6, name);
	for (int i = 0; i < sampler->steps && i < cJSON_GetArraySize(timesteps); i++) {
		const double expected = cJSON_GetArrayItem(timesteps, i)->valuedouble;
		const double allowed = expected == trunc(expected) ? 0 : 0.01;
		CHECK(fabs(sampler->step[i].timestep - expected) <= allowed, name);
		draws += sampler->step[i].draws_noise;
	}
	CHECK(draws == (int)number_of(run, "noise_draws"), name);
}

static void follow(const struct smalti_sampler *sampler, const float *x0, const float *expected,
		   const cJSON *run)
{
	float x[VALUES], output[VALUES], noise[VALUES], history[VALUES * SMALTI_SAMPLER_HISTORY];
	struct smalti_generator generator;
	smalti_generator_seed(&generator, 0);
	for (int k = 0; k < VALUES * SMALTI_SAMPLER_HISTORY; k++)
		history[k] = NAN; /* nothing of it may be read before it is written */
	for (int k = 0; k < VALUES; k++)
		x[k] = (float)(x0[k] * sampler->initial_sigma);
	for (int64_t i = 0; i < sampler->steps; i++) {
		const struct smalti_sampler_step *step = &sampler->step[i];
		char what[96];
		for (int k = 0; k < VALUES; k++) {
			const double scaled = x[k] * step->input_scale;
			output[k] = (float)(0.97 * scaled + 0.03 * sin(2 * scaled + step->timestep / 250));
		}
		if (step->draws_noise)
			smalti_randn(&generator, SMALTI_F32, VALUES, noise);
		smalti_sampler_apply(step, VALUES, output, step->draws_noise ? noise : NULL, x,
				     sampler->history ? history : NULL);
		snprintf(what, sizeof(what), "%s, call %lld", text_of(run, "name"), (long long)i);
		golden_near(x, expected + i * VALUES, VALUES, tolerance_of(run), what);
	}
}

static void runs_are_those_of_the_reference(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *runs = smalti_json_read(test_data("golden/samplers.json"), 1 << 20, &error);
	struct smalti_safetensors *file = golden_open("golden/samplers.safetensors");
	float *x = golden_values(smalti_safetensors_find(file, "x"));
	SUCCEEDS(runs ? 0 : -1, &error, "golden/samplers.json");
	CHECK(cJSON_GetArraySize(runs) == RUNS, "runs");
	const cJSON *run;
	cJSON_ArrayForEach (run, runs) {
		struct smalti_sampler *sampler = sampler_of(run);
		float *expected = golden_values(smalti_safetensors_find(file, text_of(run, "name")));
		if (sampler) {
			check_table(sampler, run);
			follow(sampler, x, expected, run);
		}
		free(expected);
		free(sampler);
	}
	free(x);
	smalti_safetensors_close(file);
	cJSON_Delete(runs);
}

static const struct test tests[] = {{"runs are those of the reference", runs_are_those_of_the_reference}};

TEST_MAIN("runs of samplers", tests)
