/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of latents: the VAE's own, and the diffusion model's. */
#include "embedded.h"
#include "golden.h"
#include "harness.h"
#include "samplers/noise.h"
#include "smalti/generate.h"
#include "stage.h"
#include "vae_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct smalti_session *session;

/* scaling_factor·(mean + std·torch.randn(count, generator=manual_seed(7))), by torch itself. */
static void samples_as_torch(void)
{
	static const struct {
		int count;
		float first, second, last;
	} cases[] = {{20, -0x1.b6bea6p-1f, -0x1.9606c2p-2f, 0x1.e10f3cp-2f},
		     {7, -0x1.4dfd48p-1f, -0x1.0d547ep-2f, -0x1.5d3816p-2f}};
	struct smalti_vae *vae = open_test_vae(session, NULL);
	for (size_t k = 0; k < COUNT(cases); k++) {
		float mean[20], std[20], latents[20];
		for (int i = 0; i < 20; i++) {
			mean[i] = 0.125f * (float)i - 1;
			std[i] = 0.5f + 0.0625f * (float)i;
		}
		smalti_vae_sample(vae, cases[k].count, 1, mean, std, 7, latents);
		CHECK(latents[0] == cases[k].first && latents[1] == cases[k].second &&
			  latents[cases[k].count - 1] == cases[k].last,
		      "the very bits");
	}
	smalti_vae_close(vae);
}

/* A VAE's directory with the embedded weights and other keys in its config.json. */
static const char *write_vae(const char *keys)
{
	static char command[2048];
	const char *directory = test_scratch();
	snprintf(
	    command, sizeof(command),
	    "cp '%s'/*.safetensors '%s' && sed '1a %s' < '%s'/config.json | grep -v null > '%s'/config.json",
	    test_model("tesserae/vae"), directory, keys, test_model("tesserae/vae"), directory);
	CHECK(system(command) == 0, command);
	return directory;
}

static const struct latent_case {
	const char *keys;
	float shift[4], factor[4]; /* model's = factor·(VAE's − shift) */
} latent_cases[] = {
    {"\"shift_factor\": 0.375,", {0.375f, 0.375f, 0.375f, 0.375f}, {1, 1, 1, 1}},
    {"\"latents_mean\": [0.5, -0.25, 0, 1], \"latents_std\": [0.5, 2, 1, 4],",
     {0.5f, -0.25f, 0, 1},
     {2, 0.5f, 1, 0.25f}},
};

/* The diffusion model's latents and the VAE's, both ways, against diffusers' formula spelled out. */
static void latents_with_statistics(void)
{
	static const float scaling = 0.607718f;
	for (size_t k = 0; k < COUNT(latent_cases); k++) {
		const struct latent_case *c = &latent_cases[k];
		struct smalti_vae *vae = open_test_vae(session, write_vae(c->keys));
		float mean[VAE_VALUES], std[VAE_VALUES], expected[VAE_VALUES], sampled[VAE_VALUES],
		    noise[VAE_VALUES];
		test_fill(mean, VAE_VALUES, 0.7, 0.2);
		test_fill(std, VAE_VALUES, 0.3, 0.9);
		struct smalti_generator generator;
		smalti_generator_seed(&generator, 7);
		smalti_randn(&generator, SMALTI_F32, VAE_VALUES, noise);
		for (int i = 0; i < VAE_VALUES; i++) {
			const int channel = i / (VAE_HEIGHT * VAE_WIDTH);
			noise[i] = mean[i] + std[i] * noise[i];
			expected[i] = scaling * c->factor[channel] * (noise[i] - c->shift[channel]);
		}
		smalti_vae_sample(vae, VAE_VALUES, VAE_HEIGHT * VAE_WIDTH, mean, std, 7, sampled);
		golden_near(sampled, expected, VAE_VALUES, 1e-6, c->keys);
		struct vae_image own = decoded_vae_image(vae, noise, 4, true, 0),
				 models = decoded_vae_image(vae, sampled, 4, false, 0);
		golden_near((float *)(void *)models.samples, (float *)(void *)own.samples, VAE_SAMPLES, 1e-5,
			    c->keys);
		free(own.samples);
		free(models.samples);
		smalti_vae_close(vae);
	}
}

/* What generating gives away: its latents, and the rows that it decodes of them. */
struct generated {
	float latents[VAE_VALUES];
	uint8_t rows[VAE_SAMPLES];
	int status;
};

static int keep_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	struct generated *to = user;
	(void)error;
	CHECK(shape[0] * shape[1] * shape[2] == VAE_VALUES, "the latents' extents");
	memcpy(to->latents, values, sizeof(to->latents));
	return 0;
}

static int keep_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	struct generated *to = user;
	(void)error;
	memcpy(to->rows + first * 8 * VAE_WIDTH * 3, rgb, (size_t)(count * 8 * VAE_WIDTH * 3));
	return 0;
}

static void keep_status(void *user, int status, const struct smalti_error *error)
{
	(void)error;
	((struct generated *)user)->status = status;
}

/* An image is decoded as its latents are alone. */
static void generating_with_statistics(void)
{
	for (size_t k = 0; k < COUNT(latent_cases); k++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *directory = write_vae(latent_cases[k].keys);
		const struct smalti_model_options options = {.vae = directory};
		struct smalti_model *model = smalti_model_open(session, &options, &error);
		SUCCEEDS(model ? 0 : -1, &error, directory);
		struct smalti_batch *batch = smalti_batch_open(model, &error);
		struct smalti_request request;
		static struct generated found;
		found.status = -1;
		smalti_request_defaults(&request);
		request.prompt = "tree";
		request.width = 8 * VAE_WIDTH;
		request.height = 8 * VAE_HEIGHT;
		request.steps = 1;
		const struct smalti_image_callbacks image = {
		    .user = &found, .rows = keep_rows, .latents = keep_latents, .done = keep_status};
		SUCCEEDS(embedded_submit(model, batch, &request, 0, &image, &error), &error, "submit");
		smalti_batch_close(batch);
		smalti_model_close(model);
		CHECK(found.status == 0, "generated");
		struct smalti_vae *vae = open_test_vae(session, directory);
		struct vae_image again = decoded_vae_image(vae, found.latents, 1, false, 8);
		CHECK(memcmp(again.samples, found.rows, sizeof(found.rows)) == 0, latent_cases[k].keys);
		free(again.samples);
		smalti_vae_close(vae);
	}
}

static const struct test tests[] = {
    {"samples as torch draws them", samples_as_torch},
    {"latents with statistics", latents_with_statistics},
    {"generating with statistics", generating_with_statistics},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("scales of latents", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
