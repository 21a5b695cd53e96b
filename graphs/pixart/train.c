/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"

static void find_parts(struct smalti_dit_pass *pass)
{
	const struct smalti_tokens *tokens = pass->sample.tokens;
	int64_t band = 0;
	for (int i = 0; i < pass->parts; i++) {
		struct smalti_train_part *part = &pass->part[i];
		part->place = smalti_strategy_place(tokens->strategy, pass->sample.replica, 0,
						    i % pass->shards, i / pass->shards);
		part->begin = band;
		while (band < tokens->partition.bands && smalti_train_home(pass, band) == i)
			band++;
		part->end = band;
	}
	pass->here = pass->part;
}

static struct smalti_dit_pass *new_pass(struct smalti_dit_train *train, struct smalti_task_group *task_group,
					const struct smalti_dit_sample *sample)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_transformer_config *c = &train->config;
	const struct smalti_partition *bands = &sample->tokens->partition;
	struct smalti_dit_pass *pass = smalti_calloc(1, sizeof(*pass), &error);
	if (pass) {
		*pass = (struct smalti_dit_pass){.train = train, .task_group = task_group, .sample = *sample};
		pass->ranks = sample->tokens->strategy->parts[SMALTI_AXIS_RANK];
		pass->shards = train->parameters->shards;
		pass->parts = pass->ranks * pass->shards;
		pass->part = smalti_calloc(pass->parts, sizeof(*pass->part), &error);
		pass->z = smalti_calloc(c->layers + 1, sizeof(*pass->z), &error);
		pass->kept = smalti_calloc(c->layers, sizeof(*pass->kept), &error);
	}
	for (int64_t i = 0; pass && pass->z && i <= c->layers; i++) {
		pass->z[i].partition = bands;
		pass->z[i].tile = smalti_calloc(bands->bands, sizeof(*pass->z[i].tile), &error);
	}
	if (pass && error.code == SMALTI_OK) {
		find_parts(pass);
		return pass;
	}
	smalti_task_group_break(task_group, &error);
	smalti_dit_train_drop(pass);
	return NULL;
}

/* Removes place and turn from tasks inserted later. */
static void leave(const struct smalti_dit_pass *pass)
{
	smalti_task_group_place(pass->task_group, SMALTI_ANYWHERE);
	smalti_task_group_behind(pass->task_group, NULL);
}

struct smalti_dit_pass *smalti_dit_train_forward(struct smalti_dit_train *train,
						 struct smalti_task_group *task_group,
						 const struct smalti_dit_sample *sample,
						 struct smalti_tile **out)
{
	const struct smalti_transformer_config *c = &train->config;
	*out = NULL;
	struct smalti_dit_pass *pass = new_pass(train, task_group, sample);
	if (!pass)
		return NULL;
	pass->patches =
	    smalti_grid_new(task_group, &sample->tokens->partition, 1,
			    smalti_train_patch_columns(pass, c->in_channels) * (int64_t)sizeof(float));
	smalti_train_go(pass, 0);
	smalti_train_conditions(pass);
	smalti_train_embed(pass);
	for (int64_t i = 0; i < c->layers && !smalti_task_group_broken(task_group); i++) {
		smalti_train_take_turn(pass);
		smalti_train_block(pass, i, &pass->z[i + 1]);
		if (i < sample->recomputed)
			smalti_train_block_release(pass, i);
	}
	smalti_train_take_turn(pass);
	*out = smalti_train_project(pass);
	leave(pass);
	return pass;
}

static void begin_gradients(struct smalti_dit_pass *pass, struct smalti_tile *const *const *gradients)
{
	const struct smalti_transformer_config *c = &pass->train->config;
	for (int i = 0; i < pass->parts; i++) {
		struct smalti_train_part *part = &pass->part[i];
		part->gradients = gradients[i];
		part->ge = smalti_train_tile(pass, 1, c->width);
		part->gg = smalti_train_tile(pass, 6, c->width);
		if (c->caption_channels && smalti_train_shard(pass, 0, i % pass->shards)->heads > 0)
			part->gc = smalti_train_tile(pass, pass->sample.text_tokens, c->width);
	}
}

/* Inserts y += x. If y is NULL, x becomes y. */
static void add_or_take(const struct smalti_dit_pass *pass, int64_t count, struct smalti_tile **x,
			struct smalti_tile **y)
{
	if (*x && *y) {
		smalti_train_add(pass, count, *x, true, *y);
	} else if (*x) {
		*y = *x;
		*x = NULL;
	}
}

/* Adds the parts' gradients of e, g and c, in their order, to the first part's. */
static void add_parts(struct smalti_dit_pass *pass)
{
	const int64_t width = pass->train->config.width;
	struct smalti_train_part *to = &pass->part[0];
	smalti_train_go(pass, 0);
	for (int i = 1; i < pass->parts; i++) {
		struct smalti_train_part *from = &pass->part[i];
		smalti_train_add(pass, width, from->ge, true, to->ge);
		smalti_train_add(pass, 6 * width, from->gg, true, to->gg);
		add_or_take(pass, pass->sample.text_tokens * width, &from->gc, &to->gc);
	}
}

void smalti_dit_train_backward(struct smalti_dit_pass *pass, struct smalti_tile *gout,
			       struct smalti_tile *const *const *gradients, bool add, struct smalti_tile *gx)
{
	const struct smalti_transformer_config *c = &pass->train->config;
	struct smalti_task_group *task_group = pass->task_group;
	pass->add = add;
	begin_gradients(pass, gradients);
	struct smalti_grid gz = smalti_train_grid(pass, c->width);
	smalti_train_take_turn(pass);
	smalti_train_project_backward(pass, gout, &gz);
	for (int64_t i = c->layers - 1; i >= 0 && !smalti_task_group_broken(task_group); i--) {
		smalti_train_take_turn(pass);
		if (i < pass->sample.recomputed) {
			smalti_train_block(pass, i, NULL);
			smalti_train_take_turn(pass);
		}
		if (smalti_task_group_broken(task_group))
			break;
		smalti_train_block_backward(pass, i, &gz);
		smalti_train_block_release(pass, i);
		smalti_grid_release(&pass->z[i + 1]);
	}
	smalti_train_take_turn(pass);
	smalti_train_embed_backward(pass, &gz, gx);
	add_parts(pass);
	smalti_train_conditions_backward(pass);
	smalti_grid_release(&gz);
	leave(pass);
	smalti_dit_train_drop(pass);
}

void smalti_dit_train_drop(struct smalti_dit_pass *pass)
{
	if (!pass)
		return;
	const int64_t layers = pass->train->config.layers;
	for (int64_t i = 0; pass->kept && i < layers; i++)
		smalti_train_block_release(pass, i);
	for (int64_t i = 0; pass->z && i <= layers; i++)
		smalti_grid_release(&pass->z[i]);
	smalti_grid_release(&pass->patches);
	smalti_tile_release(pass->turn);
	smalti_train_conditions_release(pass);
	for (int i = 0; pass->part && i < pass->parts; i++) {
		smalti_tile_release(pass->part[i].final);
		smalti_tile_release(pass->part[i].gc);
		smalti_tile_release(pass->part[i].gg);
		smalti_tile_release(pass->part[i].ge);
	}
	free(pass->part);
	free(pass->z);
	free(pass->kept);
	free(pass);
}
