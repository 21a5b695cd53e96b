/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/pixart/train_pass.h"

static const struct smalti_dit_task patches_task = {SMALTI_GRAIN_HALF_BLOCK, "patches", "patches' gradients"},
				    final_task = {SMALTI_GRAIN_HALF_BLOCK, "final layer",
						  "final layer's gradients"};

static struct smalti_dit_position at_end(const struct smalti_dit_pass *pass)
{
	return (struct smalti_dit_position){pass->sample.replica, -1};
}

static struct patchify_arguments patches_of(const struct smalti_dit_pass *pass, int64_t channels,
					    int64_t band, bool channels_last)
{
	const int64_t patch = pass->train->dit->config.patch_size;
	return (struct patchify_arguments){.channels = channels,
					   .height = pass->sample.height,
					   .width = pass->sample.width,
					   .patch = patch,
					   .columns = pass->sample.width / patch,
					   .first = pass->sample.tokens->partition.first[band],
					   .rows = smalti_dit_rows(&pass->forward, band),
					   .scale = 1.0f,
					   .channels_last = channels_last};
}

static void to_tokens(const struct smalti_dit_pass *pass, struct smalti_tile *planes, int64_t channels,
		      int64_t band, bool channels_last, struct smalti_tile *tokens)
{
	const struct patchify_arguments a = patches_of(pass, channels, band, channels_last);
	const struct patchify_buffers buffers = {.planes = planes, .tokens = tokens};
	smalti_insert_patchify(pass->tape.task_group, &buffers, &a);
}

/* Inserts planes = the bands' tokens; `gradient`: their gradients. */
static void to_planes(struct smalti_dit_pass *pass, const struct smalti_value *tokens, int64_t channels,
		      bool channels_last, bool gradient, struct smalti_tile *planes)
{
	struct smalti_task_group *task_group = pass->tape.task_group;
	smalti_insert(clear, task_group, (.y = planes),
		      .bytes = channels * pass->sample.height * pass->sample.width * (int64_t)sizeof(float));
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		const struct patchify_arguments a = patches_of(pass, channels, b, channels_last);
		const struct unpatchify_buffers buffers = {
		    .tokens = gradient ? smalti_tape_gradient(&pass->tape, tokens[b]) : tokens[b].tile,
		    .planes = planes};
		smalti_insert_unpatchify(task_group, &buffers, &a);
	}
}

static int64_t patch_columns(const struct smalti_dit_pass *pass, int64_t channels)
{
	const int64_t patch = pass->train->dit->config.patch_size;
	return channels * patch * patch;
}

void smalti_dit_embed_planes(struct smalti_dit_pass *pass)
{
	const struct smalti_dit *dit = pass->train->dit;
	const struct smalti_dit_forward *f = &pass->forward;
	const struct smalti_position_table *positions = pass->conditions->positions;
	struct smalti_tape *tape = &pass->tape;
	for (int64_t b = 0; b < f->tokens->partition.bands; b++) {
		const int64_t rows = smalti_dit_rows(f, b);
		struct smalti_value *z = &smalti_dit_stream(pass, 0)[b];
		smalti_dit_begin_band(f, at_end(pass), b, &patches_task);
		pass->patches[b] =
		    smalti_value_new(tape, rows, patch_columns(pass, dit->config.in_channels), SMALTI_F32);
		to_tokens(pass, pass->sample.x, dit->config.in_channels, b, false, pass->patches[b].tile);
		*z = smalti_layer_linear(tape, &dit->patch, pass->patches[b], SMALTI_F32);
		smalti_insert(add_positions, tape->task_group, (.positions = positions->tile, .y = z->tile),
			      .rows = rows, .dim = dit->config.width, .first = f->tokens->partition.first[b],
			      .columns = positions->columns);
		smalti_tape_end_task(tape);
	}
}

void smalti_dit_planes_gradient(struct smalti_dit_pass *pass, struct smalti_tile *gx)
{
	smalti_tape_go(&pass->tape, 0);
	to_planes(pass, pass->patches, pass->train->dit->config.in_channels, false, true, gx);
}

struct smalti_tile *smalti_dit_project_planes(struct smalti_dit_pass *pass)
{
	const struct smalti_dit *dit = pass->train->dit;
	const struct smalti_dit_forward *f = &pass->forward;
	struct smalti_tape *tape = &pass->tape;
	for (int part = 0; part < tape->parts; part++) {
		struct smalti_value *final = &f->part[part].modulation;
		smalti_tape_go(tape, part);
		smalti_layer_modulation(tape, dit->final_table, 2, pass->conditions->timestep, 1, 0, final);
	}
	for (int64_t b = 0; b < f->tokens->partition.bands; b++) {
		smalti_dit_begin_band(f, at_end(pass), b, &final_task);
		pass->v[b] = smalti_dit_project_out(f, f->part[tape->part].modulation,
						    smalti_dit_stream(pass, dit->config.layers)[b]);
		smalti_tape_end_task(tape);
	}
	smalti_tape_go(tape, 0);
	struct smalti_tile *out =
	    smalti_tile_new(tape->task_group, dit->config.out_channels,
			    pass->sample.height * pass->sample.width * (int64_t)sizeof(float));
	to_planes(pass, pass->v, dit->config.out_channels, true, false, out);
	for (int64_t b = 0; b < f->tokens->partition.bands; b++) {
		struct smalti_value v = pass->v[b]; /* whose gradient is set later */
		smalti_value_release(tape, &v);
	}
	return out;
}

void smalti_dit_begin_gradients(struct smalti_dit_pass *pass, struct smalti_tile *gout)
{
	bool add;
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++) {
		smalti_dit_go_home(&pass->forward, at_end(pass), b);
		to_tokens(pass, gout, pass->train->dit->config.out_channels, b, true,
			  smalti_tape_into(&pass->tape, pass->v[b], &add));
	}
}
