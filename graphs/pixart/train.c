/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train.h"
#include "graphs/pixart/block.h"
#include "graphs/pixart/dit.h"
#include "graphs/trained_pass.h"

static const struct smalti_dit_task conditions_task = {SMALTI_GRAIN_HALF_BLOCK, "conditions",
						       "conditions' gradients"},
				    caption_task = {SMALTI_GRAIN_HALF_BLOCK, "caption",
						    "caption's gradients"},
				    patches_task = {SMALTI_GRAIN_HALF_BLOCK, "patches", "patches' gradients"},
				    final_task = {SMALTI_GRAIN_HALF_BLOCK, "final layer",
						  "final layer's gradients"};

/* f16 ends at 65504, so there self-attention takes f32. */
static struct smalti_denoiser *make(struct smalti_weights *weights,
				    const struct smalti_transformer_config *config,
				    const struct smalti_strategy *strategy, enum smalti_dtype compute,
				    struct smalti_error *error)
{
	struct smalti_dit *dit = smalti_dit_of(weights, config, compute, error);
	if (!dit)
		return NULL;
	dit->attention = compute == SMALTI_F16 ? SMALTI_F32 : compute;
	if (smalti_dit_shards_of(dit, strategy, error))
		return &dit->denoiser;
	smalti_denoiser_free(&dit->denoiser);
	return NULL;
}

static bool is_condition(const char *parameter)
{
	const char *name = smalti_parameter_module(parameter);
	static const char *const prefixes[] = {"adaln_single.", "caption_projection."};
	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static struct smalti_dit *dit_of(const struct smalti_trained_pass *pass)
{
	return (struct smalti_dit *)pass->trained->denoiser;
}

static int64_t widest(const struct smalti_denoiser *denoiser)
{
	return ((const struct smalti_dit *)denoiser)->blocks->ff_in.out;
}

static int open_pass(struct smalti_trained_pass *pass, struct smalti_error *error)
{
	const struct smalti_strategy *strategy = pass->sample.tokens->strategy;
	struct smalti_dit_forward *f = pass->own = smalti_calloc(1, sizeof(*f), error);
	if (!f)
		return -1;
	*f = (struct smalti_dit_forward){.dit = dit_of(pass),
					 .task_group = pass->tape.task_group,
					 .tape = &pass->tape,
					 .tokens = pass->sample.tokens,
					 .strategy = strategy,
					 .shards = smalti_dit_shards_of(dit_of(pass), strategy, error)};
	return f->shards ? smalti_dit_forward_open(f, error) : -1;
}

static void close_pass(struct smalti_trained_pass *pass)
{
	struct smalti_dit_forward *f = pass->own;
	if (!f)
		return;
	smalti_dit_release_conditions(f->conditions);
	smalti_dit_forward_close(f);
	free(f);
}

/* Computes at the first part what the timestep, the size and the caption give. */
static void insert_conditions(struct smalti_trained_pass *pass, struct smalti_dit_forward *f)
{
	const struct smalti_trained_sample *sample = &pass->sample;
	const float timestep = (float)sample->timestep;
	const struct smalti_dit_conditioning conditioning = {
	    &timestep, 1, {sample->sides[0], sample->sides[1]}, sample->ratio};
	const struct smalti_value text = {sample->text, sample->text_tokens, f->dit->denoiser.text_width,
					  SMALTI_F32, 0};
	smalti_tape_go(&pass->tape, 0);
	smalti_dit_begin_task(f, &conditions_task, 1, pass->place[0]);
	f->conditions = smalti_dit_conditions_on(&pass->tape, f->dit, sample->tokens, &conditioning);
	smalti_tape_end_task(&pass->tape);
	smalti_dit_begin_task(f, &caption_task, (double)text.rows, pass->place[0]);
	f->caption = smalti_dit_caption(&pass->tape, f->dit, text);
	smalti_tape_end_task(&pass->tape);
}

static struct smalti_dit_position position(const struct smalti_trained_pass *pass, int64_t block)
{
	return (struct smalti_dit_position){pass->sample.replica, block};
}

/* Makes a band's tokens: patches through their linear layer, with their positions. */
static struct smalti_value embed(struct smalti_trained_pass *pass, const struct smalti_dit_forward *f,
				 int64_t band)
{
	const struct smalti_position_table *positions = f->conditions->positions;
	const struct smalti_value z =
	    smalti_layer_linear(&pass->tape, &f->dit->patch, smalti_trained_patches(pass, band), SMALTI_F32);
	smalti_insert(add_positions, f->task_group, (.positions = positions->tile, .y = z.tile),
		      .rows = z.rows, .dim = z.columns, .first = f->tokens->partition.first[band],
		      .columns = positions->columns);
	return z;
}

static void begin(struct smalti_trained_pass *pass)
{
	struct smalti_dit_forward *f = pass->own;
	insert_conditions(pass, f);
	for (int64_t b = 0; f->conditions && b < f->tokens->partition.bands; b++) {
		smalti_dit_begin_band(f, position(pass, -1), b, &patches_task);
		smalti_trained_stream(pass, 0)[b] = embed(pass, f, b);
		smalti_tape_end_task(&pass->tape);
	}
}

static void insert_layer(struct smalti_trained_pass *pass, int64_t layer, bool last, struct smalti_value *z)
{
	const struct smalti_dit_range all = {0, pass->sample.tokens->partition.bands};
	smalti_dit_block(pass->own, position(pass, layer), all, false, NULL, last, z);
}

static void end(struct smalti_trained_pass *pass)
{
	const struct smalti_dit_forward *f = pass->own;
	struct smalti_tape *tape = &pass->tape;
	const struct smalti_value *z = smalti_trained_stream(pass, f->dit->config.layers);
	for (int part = 0; part < tape->parts; part++) {
		struct smalti_value *final = f->part[part].modulation;
		smalti_tape_go(tape, part);
		smalti_layer_modulation(tape, f->dit->final_table, 2, f->conditions->timestep, 1, 0, final);
	}
	for (int64_t b = 0; b < f->tokens->partition.bands; b++) {
		smalti_dit_begin_band(f, position(pass, -1), b, &final_task);
		pass->v[b] = smalti_dit_project_out(f, *f->part[tape->part].modulation, z[b]);
		smalti_tape_end_task(tape);
	}
}

const struct smalti_trained_functions smalti_dit_trained = {
    .load = smalti_dit_new,
    .make = make,
    .is_condition = is_condition,
    .widest = widest,
    .open = open_pass,
    .close = close_pass,
    .begin = begin,
    .layer = insert_layer,
    .end = end,
};
