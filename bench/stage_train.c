/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "bench/stage_parts.h"
#include "graphs/pixart/train.h"
#include "train/trainer.h"

enum { CAPTION_TOKENS = 40, FACTOR = 8, TIMESTEP = 500, AT_A_TIME = 2 /* samples, as a trainer would */ };

struct state {
	struct smalti_transformer_config config;
	struct smalti_parameters *parameters;
	struct smalti_trained *train;
	struct smalti_tokens tokens;
	struct smalti_trained_sample sample;
	struct smalti_tile *gout, **gradients;
};

static int make_inputs(struct smalti_stage_run *run, struct smalti_error *error)
{
	struct state *state = run->state;
	const struct smalti_transformer_config *c = &state->config;
	const int64_t patch = c->patch_size,
		      text_width = c->caption_channels ? c->caption_channels : c->width;
	if (smalti_stage_size(run, c->sample_size * FACTOR, FACTOR * patch, error) < 0)
		return -1;
	const int64_t height = run->height / FACTOR, width = run->width / FACTOR;
	if (smalti_tokens_cut(&state->tokens, &smalti_strategy_none, height / patch * (width / patch),
			      width / patch, SMALTI_MAX_BAND, error) < 0)
		return -1;
	state->sample = (struct smalti_trained_sample){
	    .x = smalti_stage_noise(run->weights, c->in_channels, height * width),
	    .height = height,
	    .width = width,
	    .tokens = &state->tokens,
	    .text = smalti_stage_noise(run->weights, CAPTION_TOKENS, text_width),
	    .text_tokens = CAPTION_TOKENS,
	    .timestep = TIMESTEP,
	    .sides = {(float)run->height, (float)run->width},
	    .ratio = (float)run->height / (float)run->width};
	state->gout = smalti_stage_noise(run->weights, c->out_channels, height * width);
	for (int64_t i = 0; i < state->parameters->count; i++)
		state->gradients[i] = smalti_parameter_tile(&state->parameters->list[i], run->weights);
	return smalti_task_group_status(run->weights, error);
}

static int open_train(struct smalti_stage_run *run, struct smalti_error *error)
{
	struct state *state = run->state = smalti_calloc(1, sizeof(*state), error);
	char *path = state ? smalti_stage_config(run, "transformer", error) : NULL;
	const int status = path ? smalti_transformer_config_read(path, &state->config, error) : -1;
	free(path);
	if (status < 0 || smalti_stage_checkpoint(run, "transformer", SMALTI_STEM_DIFFUSERS, error) < 0)
		return -1;
	state->parameters = smalti_parameters_new(run->weights, &smalti_dit_trained, &state->config,
						  &smalti_strategy_none, error);
	if (!state->parameters || smalti_parameters_read(state->parameters, run->weights, &state->config,
							 run->checkpoint, true, error) < 0)
		return -1;
	state->train = smalti_trained_new(&state->config, state->parameters, run->model->precision, error);
	state->gradients = smalti_calloc(state->parameters->count, sizeof(*state->gradients), error);
	if (!state->train || !state->gradients)
		return -1;
	return make_inputs(run, error);
}

/* Inserts a sample; `add`: to the gradients of those before. */
static void insert_sample(struct state *state, struct smalti_task_group *task_group, bool add)
{
	struct smalti_tile *out, *const *const gradients[] = {state->gradients};
	struct smalti_trained_pass *pass =
	    smalti_trained_forward(state->train, task_group, &state->sample, &out);
	if (pass)
		smalti_trained_backward(pass, state->gout, gradients, add);
	smalti_tile_release(out);
}

static void insert(struct smalti_stage_run *run, struct smalti_task_group *task_group)
{
	struct state *state = run->state;
	smalti_trained_begin_step(state->train, task_group);
	for (int64_t i = 0; i < run->stage->samples; i++) {
		if (i && i % AT_A_TIME == 0)
			smalti_task_group_wait(task_group); /* else all activations would be in memory */
		insert_sample(state, task_group, i > 0);
	}
	smalti_trained_end_step(state->train);
}

static void close_train(struct smalti_stage_run *run)
{
	struct state *state = run->state;
	if (!state)
		return;
	for (int64_t i = 0; state->gradients && i < state->parameters->count; i++)
		smalti_tile_release(state->gradients[i]);
	free(state->gradients);
	smalti_tile_release(state->gout);
	smalti_tile_release(state->sample.x);
	smalti_tile_release(state->sample.text);
	smalti_trained_free(state->train);
	smalti_parameters_free(state->parameters);
	smalti_tokens_free(&state->tokens);
	free(state);
}

const struct smalti_stage_part smalti_stage_train = {open_train, insert, close_train};
