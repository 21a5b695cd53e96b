/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"
#include "kernels/conditioning.h"

struct smalti_tile *smalti_train_modulation(const struct smalti_dit_pass *pass, int64_t table, int64_t rows,
					    struct smalti_tile *embedding, int64_t period)
{
	const int64_t width = pass->train->config.width;
	struct smalti_tile *y = smalti_train_tile(pass, rows, width);
	smalti_insert(modulation, pass->task_group,
		      (.table = smalti_train_parameter(pass, table), .embedding = embedding, .y = y),
		      .rows = rows, .dim = width, .period = period, .step = 0);
	return y;
}

/* Returns an embedder's output [rows, its width]. */
static struct smalti_tile *embed(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *embedder,
				 const float *values, int64_t rows, struct smalti_mlp_kept *kept)
{
	struct smalti_tile *numbers = smalti_tile_upload(pass->task_group, rows, sizeof(float), values);
	kept->x = smalti_train_tile(pass, rows, SMALTI_SINUSOID_SIZE);
	smalti_insert(sinusoid, pass->task_group, (.values = numbers, .y = kept->x), .rows = rows);
	smalti_tile_release(numbers);
	return smalti_train_mlp(pass, embedder, (struct smalti_train_rows){kept->x, rows, SMALTI_F32},
				&kept->hidden, NULL);
}

static void embed_backward(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *embedder,
			   const struct smalti_mlp_kept *kept, int64_t rows, struct smalti_tile *gy)
{
	smalti_train_mlp_backward(pass, embedder, (struct smalti_train_rows){kept->x, rows, SMALTI_F32},
				  kept->hidden, gy, false, false, NULL);
}

static void release_kept(const struct smalti_mlp_kept *kept)
{
	smalti_tile_release(kept->x);
	smalti_tile_release(kept->hidden);
}

/* Inserts e += [r(height) ‖ r(width) ‖ a(ratio)]. */
static void add_micro_conditions(struct smalti_dit_pass *pass)
{
	const struct smalti_dit_train *train = pass->train;
	const int64_t width = train->config.width, third = width / 3 * (int64_t)sizeof(float);
	struct smalti_tile *row = smalti_train_tile(pass, 1, width);
	struct smalti_tile *sides = embed(pass, &train->resolution, pass->sample.sides, 2, &pass->resolution);
	struct smalti_tile *ratio =
	    embed(pass, &train->aspect_ratio, &pass->sample.ratio, 1, &pass->aspect_ratio);
	smalti_insert(join, pass->task_group, (.first = sides, .second = ratio, .y = row),
		      .first_bytes = 2 * third, .second_bytes = third);
	smalti_insert(add_row, pass->task_group, (.row = row, .y = pass->e), .rows = 1, .dim = width);
	smalti_tile_release(sides);
	smalti_tile_release(ratio);
	smalti_tile_release(row);
}

/* Returns the thirds first … first + count − 1 of e's gradient, a row each. */
static struct smalti_tile *take_thirds(const struct smalti_dit_pass *pass, int64_t first, int64_t count)
{
	const int64_t width = pass->train->config.width, third = width / 3 * (int64_t)sizeof(float);
	struct smalti_tile *y = smalti_train_tile(pass, count, width / 3);
	smalti_insert(take_columns, pass->task_group, (.x = pass->part->ge, .y = y), .rows = 1, .parts = 1,
		      .in = 3 * third, .first = first * third, .columns = count * third);
	return y;
}

static void micro_conditions_backward(const struct smalti_dit_pass *pass)
{
	struct smalti_tile *sides = take_thirds(pass, 0, 2), *ratio = take_thirds(pass, 2, 1);
	embed_backward(pass, &pass->train->resolution, &pass->resolution, 2, sides);
	embed_backward(pass, &pass->train->aspect_ratio, &pass->aspect_ratio, 1, ratio);
	smalti_tile_release(sides);
	smalti_tile_release(ratio);
}

static struct smalti_train_rows text_of(const struct smalti_dit_pass *pass)
{
	return (struct smalti_train_rows){pass->sample.text, pass->sample.text_tokens, SMALTI_F32};
}

void smalti_train_conditions(struct smalti_dit_pass *pass)
{
	const struct smalti_dit_train *train = pass->train;
	const int64_t width = train->config.width;
	const float timestep = (float)pass->sample.timestep;
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, 1, "conditions");
	pass->e = embed(pass, &train->timestep, &timestep, 1, &pass->timestep);
	if (train->config.additional_conditions)
		add_micro_conditions(pass);
	pass->activated = smalti_train_tile(pass, 1, width);
	smalti_insert(silu, pass->task_group, (.x = pass->e, .y = pass->activated), .count = width);
	pass->g = smalti_train_linear(pass, &train->adaln,
				      (struct smalti_train_rows){pass->activated, 1, SMALTI_F32}, SMALTI_F32);
	smalti_fuse_end(pass->task_group);
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, pass->sample.text_tokens, "caption");
	pass->c = train->config.caption_channels
		      ? smalti_train_mlp(pass, &train->caption, text_of(pass), &pass->caption.hidden, NULL)
		      : pass->sample.text;
	smalti_fuse_end(pass->task_group);
}

void smalti_train_conditions_backward(struct smalti_dit_pass *pass)
{
	const struct smalti_dit_train *train = pass->train;
	const int64_t width = train->config.width;
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, 1, "conditions' gradients");
	struct smalti_tile *gactivated = smalti_train_tile(pass, 1, width), *ge = pass->part->ge,
			   *gg = pass->part->gg;
	smalti_train_linear_weight(pass, &train->adaln, gg,
				   (struct smalti_train_rows){pass->activated, 1, SMALTI_F32}, false);
	smalti_train_linear_input(pass, &train->adaln, gg, 1, false, gactivated);
	smalti_insert(silu_backward, pass->task_group, (.x = pass->e, .g = gactivated), .count = width);
	smalti_train_add(pass, width, gactivated, true, ge);
	smalti_tile_release(gactivated);
	embed_backward(pass, &train->timestep, &pass->timestep, 1, ge);
	if (train->config.additional_conditions)
		micro_conditions_backward(pass);
	smalti_fuse_end(pass->task_group);
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, pass->sample.text_tokens,
				"caption's gradients");
	if (train->config.caption_channels)
		smalti_train_mlp_backward(pass, &train->caption, text_of(pass), pass->caption.hidden,
					  pass->part->gc, false, false, NULL);
	smalti_fuse_end(pass->task_group);
}

void smalti_train_conditions_release(struct smalti_dit_pass *pass)
{
	release_kept(&pass->timestep);
	release_kept(&pass->resolution);
	release_kept(&pass->aspect_ratio);
	release_kept(&pass->caption);
	smalti_tile_release(pass->e);
	smalti_tile_release(pass->activated);
	smalti_tile_release(pass->g);
	if (pass->c != pass->sample.text)
		smalti_tile_release(pass->c);
}
