/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "bench/stage_parts.h"
#include "graphs/pixart/dit.h"
#include "jobs/plan.h"

#include <stdlib.h>
#include <unistd.h>

enum { BRANCHES = 2, NEGATIVE_TOKENS = 1, PROMPT_TOKENS = 40, USUAL_FACTOR = 8 };

struct state {
	struct smalti_denoiser *denoiser;
	struct smalti_cross_cache *caches[BRANCHES];
	struct smalti_conditions *conditions;
	struct smalti_tokens tokens;
	struct smalti_grid x;
};

/* Returns the pixels per latent, by the VAE beside it, which may be missing. */
static int read_factor(const struct smalti_stage_run *run, int64_t *factor, struct smalti_error *error)
{
	char *path = smalti_stage_config(run, "vae", error);
	if (!path)
		return -1;
	struct smalti_vae_config config;
	int status = 0;
	*factor = USUAL_FACTOR;
	if (access(path, F_OK) == 0 && (status = smalti_vae_config_read(path, &config, error)) == 0)
		*factor = smalti_vae_factor(&config);
	free(path);
	return status;
}

static struct smalti_cross_cache *make_cross_cache(struct smalti_stage_run *run, int64_t tokens)
{
	struct state *state = run->state;
	struct smalti_denoiser *d = state->denoiser;
	struct smalti_tile *text = smalti_stage_noise(run->weights, tokens, d->text_width);
	struct smalti_cross_cache *caption = d->functions->cross_cache(d, run->weights, text, tokens);
	smalti_tile_release(text);
	return caption;
}

/* Makes the inputs of all steps of an image: captions, conditions, the first latents. */
static int make_inputs(struct smalti_stage_run *run, int64_t factor, struct smalti_error *error)
{
	struct state *state = run->state;
	struct smalti_denoiser *d = state->denoiser;
	if (smalti_stage_size(run, d->sample_size * factor, factor * d->patch_size, error) < 0)
		return -1;
	const int64_t height = run->height / factor, width = run->width / factor;
	const int64_t tokens = height / d->patch_size * (width / d->patch_size);
	const int64_t columns = d->in_channels * d->patch_size * d->patch_size;
	if (smalti_tokens_cut(&state->tokens, &smalti_strategy_none, tokens, width / d->patch_size,
			      smalti_tile_tokens(run->session, d, NULL), error) < 0)
		return -1;
	state->caches[0] = make_cross_cache(run, NEGATIVE_TOKENS);
	state->caches[1] = make_cross_cache(run, PROMPT_TOKENS);
	state->conditions = d->functions->conditions(d, run->weights, &state->tokens, &(const float){500}, 1,
						     height, width, factor);
	state->x.partition = &state->tokens.partition;
	state->x.tile = smalti_calloc(state->tokens.partition.bands, sizeof(*state->x.tile), error);
	for (int64_t b = 0; state->x.tile && b < state->tokens.partition.bands; b++)
		state->x.tile[b] = smalti_stage_noise(
		    run->weights, smalti_partition_rows(&state->tokens.partition, b), columns);
	return state->x.tile ? smalti_task_group_status(run->weights, error) : -1;
}

static int open_dit(struct smalti_stage_run *run, struct smalti_error *error)
{
	struct smalti_transformer_config config;
	struct state *state = run->state = smalti_calloc(1, sizeof(*state), error);
	char *path = state ? smalti_stage_config(run, "transformer", error) : NULL;
	const int status = path ? smalti_transformer_config_read(path, &config, error) : -1;
	int64_t factor;
	free(path);
	if (status < 0 || read_factor(run, &factor, error) < 0 ||
	    smalti_stage_checkpoint(run, "transformer", SMALTI_STEM_DIFFUSERS, error) < 0)
		return -1;
	run->checkpoint->wants_w8a8 = run->model->w8a8;
	state->denoiser =
	    smalti_dit_new(run->weights, &config, run->checkpoint, run->model->precision, error);
	return state->denoiser ? make_inputs(run, factor, error) : -1;
}

static void insert(struct smalti_stage_run *run, struct smalti_task_group *task_group)
{
	struct state *state = run->state;
	struct smalti_grid v[BRANCHES];
	state->denoiser->functions->forward(state->denoiser, task_group, state->conditions, 0, 1.0f,
					    &state->x, state->caches, BRANCHES, NULL, v);
	for (int k = 0; k < BRANCHES; k++)
		smalti_grid_release(&v[k]);
}

static void close_dit(struct smalti_stage_run *run)
{
	struct state *state = run->state;
	if (!state)
		return;
	smalti_grid_release(&state->x);
	if (state->denoiser) {
		const struct smalti_denoiser_functions *functions = state->denoiser->functions;
		functions->release_conditions(state->conditions);
		for (int k = 0; k < BRANCHES; k++)
			functions->release_cross_cache(state->caches[k]);
		smalti_denoiser_free(state->denoiser);
	}
	smalti_tokens_free(&state->tokens);
	free(state);
}

const struct smalti_stage_part smalti_stage_dit = {open_dit, insert, close_dit};
