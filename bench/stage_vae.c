/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "bench/stage_parts.h"
#include "graphs/vae/ends.h"
#include "jobs/vae.h"

#include <stdlib.h>

enum { NATIVE_LATENT = 64 }; /* a VAE's configuration does not have its transformer's */

struct state {
	struct smalti_vae_config config;
	int64_t height, width; /* of the latent */
	struct smalti_vae_net *net;
	struct smalti_tile *latents; /* the decoder's input */
	struct smalti_vae_plan plan;
};

static int open_vae(struct smalti_stage_run *run, enum smalti_vae_direction direction,
		    struct smalti_error *error)
{
	struct state *state = run->state = smalti_calloc(1, sizeof(*state), error);
	char *path = state ? smalti_stage_config(run, "vae", error) : NULL;
	const int status = path ? smalti_vae_config_read(path, &state->config, error) : -1;
	free(path);
	if (status < 0 || smalti_stage_checkpoint(run, "vae", SMALTI_STEM_DIFFUSERS, error) < 0)
		return -1;
	const int64_t factor = smalti_vae_factor(&state->config);
	if (smalti_stage_size(run, NATIVE_LATENT * factor, factor, error) < 0)
		return -1;
	state->height = run->height / factor;
	state->width = run->width / factor;
	state->net = smalti_vae_net_new(direction, run->weights, &state->config, run->checkpoint,
					run->model->precision, error);
	const struct smalti_vae_request request = {.height = run->height, .width = run->width};
	if (!state->net)
		return -1;
	return smalti_vae_request_plan(run->session, state->net, &request, &state->plan, error);
}

static void close_vae(struct smalti_stage_run *run)
{
	struct state *state = run->state;
	if (!state)
		return;
	smalti_tile_release(state->latents);
	smalti_vae_plan_free(&state->plan);
	smalti_vae_net_free(state->net);
	free(state);
}

static int open_decoder(struct smalti_stage_run *run, struct smalti_error *error)
{
	if (open_vae(run, SMALTI_VAE_DECODE, error) < 0)
		return -1;
	struct state *state = run->state;
	state->latents =
	    smalti_stage_noise(run->weights, state->config.latent_channels * state->height, state->width);
	return smalti_task_group_status(run->weights, error);
}

static int drop_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		     struct smalti_error *error)
{
	(void)user, (void)first, (void)rows, (void)width, (void)pixels, (void)error;
	return 0;
}

static void decode(struct smalti_stage_run *run, struct smalti_task_group *task_group)
{
	struct state *state = run->state;
	smalti_vae_decode(state->net, task_group, state->latents, false, &state->plan, drop_rows, NULL);
}

const struct smalti_stage_part smalti_stage_decode = {open_decoder, decode, close_vae};

static int open_encoder(struct smalti_stage_run *run, struct smalti_error *error)
{
	return open_vae(run, SMALTI_VAE_ENCODE, error);
}

/* Draws an image with colours that change from pixel to pixel. */
static int draw_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		     struct smalti_error *error)
{
	(void)user, (void)error;
	for (int64_t i = 0; i < rows * width * 3; i++)
		pixels[i] = (float)((first * width * 3 + i) * 7919 % 509) / 254.5f - 1;
	return 0;
}

static void encode(struct smalti_stage_run *run, struct smalti_task_group *task_group)
{
	struct state *state = run->state;
	smalti_tile_release(smalti_vae_encode(state->net, task_group, &state->plan, draw_rows, NULL));
}

const struct smalti_stage_part smalti_stage_encode = {open_encoder, encode, close_vae};
