/* SPDX-License-Identifier: Apache-2.0 */
#include "toy_model.h"
#include "codelets/codelets.h"
#include "graphs/layers/layers.h"
#include "graphs/trained_pass.h"
#include "kernels/conditioning.h"

#include <stdio.h>

enum { SHIFT, GATE = 2, ROWS };

struct toy_block {
	struct smalti_linear q, kv, out;
	struct smalti_weight *table; /* [ROWS, width] */
};

struct toy {
	struct smalti_denoiser denoiser;
	struct smalti_transformer_config config;
	enum smalti_dtype compute;
	struct smalti_linear patch, time, out;
	struct smalti_weight *table; /* of the last norm: [2, width] */
	struct toy_block *blocks;
};

/* What all bands read. */
struct smalti_conditions {
	const struct smalti_tokens *tokens;
	struct smalti_value time; /* [steps, width] */
};
struct smalti_cross_cache {
	struct smalti_value text; /* without a tile of its own */
};

static struct toy *toy_of(const struct smalti_denoiser *denoiser)
{
	return (struct toy *)denoiser;
}

/* Layers, for images and for training */

static struct smalti_value embed_time(struct smalti_tape *tape, const struct toy *toy, const float *timesteps,
				      int64_t steps)
{
	struct smalti_tile *numbers = smalti_tile_upload(tape->task_group, steps, sizeof(float), timesteps);
	struct smalti_value waves = smalti_value_new(tape, steps, SMALTI_SINUSOID_SIZE, SMALTI_F32);
	smalti_value_set_constant(tape, waves, true);
	smalti_insert(sinusoid, tape->task_group, (.values = numbers, .y = waves.tile), .rows = steps);
	const struct smalti_value time =
	    smalti_layer_activated(tape, &toy->time, waves, SMALTI_EPILOGUE_SILU, SMALTI_F32);
	smalti_tile_release(numbers);
	smalti_value_release(tape, &waves);
	return time;
}

static void insert_block(struct smalti_tape *tape, const struct toy *toy, int64_t i, struct smalti_value time,
			 int64_t step, struct smalti_value text, bool last, struct smalti_value *x)
{
	const struct toy_block *block = &toy->blocks[i];
	const struct smalti_heads heads = {toy->config.heads, toy->config.head_dim, toy->compute};
	struct smalti_gate gate = {.row = GATE};
	struct smalti_value sum = {.tile = NULL};
	smalti_layer_modulation(tape, block->table, ROWS, time, 1, step, &gate.modulation);
	struct smalti_value h =
	    smalti_layer_norm(tape, *x, gate.modulation, SHIFT, toy->config.norm_eps, toy->compute);
	struct smalti_value q = smalti_layer_linear(tape, &block->q, h, toy->compute);
	struct smalti_value kv = smalti_layer_linear(tape, &block->kv, text, toy->compute);
	const struct smalti_key_bands keys = {1, &kv, NULL};
	struct smalti_value o = smalti_layer_attend(tape, &heads, q, &keys);
	smalti_layer_add(tape, &block->out, o, gate, x, &sum);
	smalti_layer_added(tape, gate, last, x, &sum);
	smalti_value_release(tape, &o);
	smalti_value_release(tape, &kv);
	smalti_value_release(tape, &q);
	smalti_value_release(tape, &h);
	smalti_value_release(tape, &gate.modulation);
}

static struct smalti_value project(struct smalti_tape *tape, const struct toy *toy, struct smalti_value time,
				   int64_t step, struct smalti_value x)
{
	struct smalti_value modulation = {.tile = NULL};
	smalti_layer_modulation(tape, toy->table, 2, time, 1, step, &modulation);
	struct smalti_value h = smalti_layer_norm(tape, x, modulation, 0, toy->config.norm_eps, toy->compute);
	const struct smalti_value v = smalti_layer_linear(tape, &toy->out, h, SMALTI_F32);
	smalti_value_release(tape, &h);
	smalti_value_release(tape, &modulation);
	return v;
}

/* Weights */

static void load_block(struct toy *toy, int64_t i)
{
	static const char *const q[3] = {"q"}, *const kv[3] = {"k", "v"}, *const out[3] = {"out"};
	struct smalti_weights *weights = toy->denoiser.weights;
	const int64_t width = toy->config.width;
	char prefix[32], name[48];
	snprintf(prefix, sizeof(prefix), "blocks.%d.", (int)i);
	toy->blocks[i].q = smalti_weights_linear(weights, width, width, true, prefix, q);
	toy->blocks[i].kv =
	    smalti_weights_linear(weights, toy->config.caption_channels, 2 * width, true, prefix, kv);
	toy->blocks[i].out = smalti_weights_linear(weights, width, width, true, prefix, out);
	snprintf(name, sizeof(name), "%stable", prefix);
	toy->blocks[i].table = smalti_weights_rows(weights, ROWS, width, name);
}

static int load(struct toy *toy, struct smalti_error *error)
{
	static const char *const only[3] = {""};
	struct smalti_weights *weights = toy->denoiser.weights;
	const struct smalti_transformer_config *c = &toy->config;
	const int64_t patch = c->patch_size * c->patch_size;
	toy->patch = smalti_weights_linear(weights, patch * c->in_channels, c->width, true, "patch", only);
	toy->time = smalti_weights_reshaped(weights, (const int64_t[]){c->width, SMALTI_SINUSOID_SIZE}, 2,
					    SMALTI_F32, "time");
	for (int64_t i = 0; i < c->layers; i++)
		load_block(toy, i);
	toy->table = smalti_weights_rows(weights, 2, c->width, "table");
	toy->out = smalti_weights_linear(weights, c->width, patch * c->out_channels, true, "out", only);
	return smalti_weights_status(weights, error);
}

/* Images */

static void free_toy(struct smalti_denoiser *denoiser)
{
	smalti_weights_free(denoiser->weights);
	free(toy_of(denoiser)->blocks);
	free(denoiser);
}

static struct smalti_cross_cache *cross_cache(struct smalti_denoiser *denoiser,
					      struct smalti_task_group *task_group, struct smalti_tile *text,
					      int64_t tokens)
{
	struct smalti_cross_cache *cache = calloc(1, sizeof(*cache));
	(void)task_group;
	if (cache)
		cache->text = (struct smalti_value){text, tokens, denoiser->text_width, SMALTI_F32, 0};
	return cache;
}

static void release_cross_cache(struct smalti_cross_cache *cache)
{
	free(cache);
}

static struct smalti_conditions *conditions(struct smalti_denoiser *denoiser,
					    struct smalti_task_group *task_group,
					    const struct smalti_tokens *tokens, const float *timesteps,
					    int64_t steps, int64_t height, int64_t width, int64_t vae_factor)
{
	struct smalti_tape tape = {.task_group = task_group};
	struct smalti_conditions *conditions = calloc(1, sizeof(*conditions));
	(void)height, (void)width, (void)vae_factor;
	if (conditions) {
		conditions->tokens = tokens;
		conditions->time = embed_time(&tape, toy_of(denoiser), timesteps, steps);
	}
	return conditions;
}

static void release_conditions(struct smalti_conditions *conditions)
{
	if (conditions)
		smalti_tile_release(conditions->time.tile);
	free(conditions);
}

static struct smalti_tile *forward_band(struct toy *toy, struct smalti_tape *tape,
					const struct smalti_conditions *conditions, int64_t step,
					struct smalti_value patches, struct smalti_value text)
{
	struct smalti_value x = smalti_layer_linear(tape, &toy->patch, patches, SMALTI_F32);
	for (int64_t i = 0; i < toy->config.layers; i++)
		insert_block(tape, toy, i, conditions->time, step, text, false, &x);
	struct smalti_tile *v = project(tape, toy, conditions->time, step, x).tile;
	smalti_value_release(tape, &x);
	return v;
}

static void forward(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
		    struct smalti_conditions *conditions, int64_t step, float input_scale,
		    const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
		    struct smalti_step_cache *step_cache, struct smalti_grid *v)
{
	struct smalti_tape tape = {.task_group = task_group};
	const int64_t columns = toy_of(denoiser)->patch.in;
	(void)input_scale, (void)step_cache; /* 1 and NULL, as the test asks for none */
	for (int k = 0; k < count; k++) {
		v[k] =
		    (struct smalti_grid){x->partition, calloc((size_t)x->partition->bands, sizeof(*v->tile))};
		for (int64_t b = 0; v[k].tile && b < x->partition->bands; b++) {
			const struct smalti_value patches = {smalti_grid_tile(x, b),
							     smalti_partition_rows(x->partition, b), columns,
							     SMALTI_F32, 0};
			v[k].tile[b] =
			    forward_band(toy_of(denoiser), &tape, conditions, step, patches, caches[k]->text);
		}
	}
}

static const struct smalti_denoiser_functions functions = {
    .free = free_toy,
    .cross_cache = cross_cache,
    .release_cross_cache = release_cross_cache,
    .conditions = conditions,
    .release_conditions = release_conditions,
    .forward = forward,
};

static struct smalti_denoiser *make(struct smalti_weights *weights,
				    const struct smalti_transformer_config *config,
				    const struct smalti_strategy *strategy, enum smalti_dtype compute,
				    struct smalti_error *error)
{
	struct toy *toy = calloc(1, sizeof(*toy));
	(void)strategy;
	*toy = (struct toy){.denoiser = {.functions = &functions,
					 .weights = weights,
					 .in_channels = config->in_channels,
					 .out_channels = config->out_channels,
					 .patch_size = config->patch_size,
					 .sample_size = config->sample_size,
					 .layers = config->layers,
					 .width = config->width,
					 .text_width = config->caption_channels},
			    .config = *config,
			    .compute = compute,
			    .blocks = calloc((size_t)config->layers, sizeof(*toy->blocks))};
	if (load(toy, error) == 0)
		return &toy->denoiser;
	free_toy(&toy->denoiser);
	return NULL;
}

struct smalti_denoiser *toy_model_new(struct smalti_task_group *task_group,
				      const struct smalti_transformer_config *config,
				      const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				      struct smalti_error *error)
{
	struct smalti_weights *weights = smalti_weights_new(task_group, checkpoint, compute, error);
	return weights ? make(weights, config, NULL, compute, error) : NULL;
}

/* Training */

/* A pass's own: the time and the caption. */
struct own {
	struct smalti_value time, text;
};

static bool is_condition(const char *name)
{
	return strncmp(name, "time.", 5) == 0;
}

static int64_t widest(const struct smalti_denoiser *denoiser)
{
	return 2 * denoiser->width;
}

static int open_pass(struct smalti_trained_pass *pass, struct smalti_error *error)
{
	pass->own = smalti_calloc(1, sizeof(struct own), error);
	return pass->own ? 0 : -1;
}

static void close_pass(struct smalti_trained_pass *pass)
{
	free(pass->own);
}

static void begin(struct smalti_trained_pass *pass)
{
	struct own *own = pass->own;
	const struct toy *toy = toy_of(pass->trained->denoiser);
	const float timestep = (float)pass->sample.timestep;
	smalti_tape_go(&pass->tape, 0);
	own->time = embed_time(&pass->tape, toy, &timestep, 1);
	own->text = (struct smalti_value){pass->sample.text, pass->sample.text_tokens,
					  toy->denoiser.text_width, SMALTI_F32, 0};
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		smalti_trained_go_home(pass, b);
		smalti_trained_stream(pass, 0)[b] = smalti_layer_linear(
		    &pass->tape, &toy->patch, smalti_trained_patches(pass, b), SMALTI_F32);
	}
}

static void layer(struct smalti_trained_pass *pass, int64_t i, bool last, struct smalti_value *z)
{
	const struct own *own = pass->own;
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		smalti_trained_go_home(pass, b);
		insert_block(&pass->tape, toy_of(pass->trained->denoiser), i, own->time, 0, own->text, last,
			     &z[b]);
	}
}

static void end(struct smalti_trained_pass *pass)
{
	const struct own *own = pass->own;
	const struct toy *toy = toy_of(pass->trained->denoiser);
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		smalti_trained_go_home(pass, b);
		pass->v[b] = project(&pass->tape, toy, own->time, 0,
				     smalti_trained_stream(pass, toy->config.layers)[b]);
	}
}

const struct smalti_trained_functions toy_model_trained = {
    .load = toy_model_new,
    .make = make,
    .is_condition = is_condition,
    .widest = widest,
    .open = open_pass,
    .close = close_pass,
    .begin = begin,
    .layer = layer,
    .end = end,
};
