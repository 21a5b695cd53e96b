/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"

struct smalti_tile *smalti_train_tile(const struct smalti_dit_pass *pass, int64_t rows, int64_t columns)
{
	return smalti_tile_new(pass->task_group, rows, columns * (int64_t)sizeof(float));
}

struct smalti_tile *smalti_train_cleared(const struct smalti_dit_pass *pass, int64_t rows, int64_t columns)
{
	struct smalti_tile *tile = smalti_train_tile(pass, rows, columns);
	smalti_insert(clear, pass->task_group, (.y = tile), .bytes = rows * columns * (int64_t)sizeof(float));
	return tile;
}

void smalti_train_add(const struct smalti_dit_pass *pass, int64_t count, struct smalti_tile *x, bool add,
		      struct smalti_tile *y)
{
	if (add)
		smalti_insert(add, pass->task_group, (.x = x, .y = y), .count = count);
	else
		smalti_insert(copy, pass->task_group, (.x = x, .y = y),
			      .bytes = count * (int64_t)sizeof(float));
}

struct smalti_tile *smalti_train_parameter(const struct smalti_dit_pass *pass, int64_t index)
{
	return pass->train->parameters->list[index].value;
}

void smalti_train_begin_task(const struct smalti_dit_pass *pass, enum smalti_grain grain, int64_t rows,
			     const char *name)
{
	const struct smalti_partition *tokens = smalti_train_bands(pass);
	const double width = (double)pass->train->config.width;
	const double row = 28 * width * width + 4 * (double)tokens->first[tokens->bands] * width;
	const struct smalti_fusion fusion = {
	    name, grain, (pass->here->gradients ? 2 : 1) * row * (double)rows, pass->here->place};
	smalti_fuse_begin(pass->task_group, &fusion);
}

struct smalti_grid smalti_train_grid(const struct smalti_dit_pass *pass, int64_t columns)
{
	return smalti_grid_new(pass->task_group, smalti_train_bands(pass), 1,
			       columns * (int64_t)sizeof(float));
}

void smalti_train_take_turn(struct smalti_dit_pass *pass)
{
	if (!pass->sample.bounded)
		return;
	smalti_task_group_behind(pass->task_group, NULL);
	if (!pass->turn)
		pass->turn = smalti_train_tile(pass, 1, 1);
	smalti_insert(clear, pass->task_group, (.y = pass->turn), .bytes = sizeof(float));
	smalti_task_group_behind(pass->task_group, pass->turn);
}

void smalti_train_go(struct smalti_dit_pass *pass, int part)
{
	pass->here = &pass->part[part];
	smalti_task_group_place(pass->task_group, pass->here->place);
}

void smalti_train_go_home(struct smalti_dit_pass *pass, int64_t band)
{
	smalti_train_go(pass, smalti_train_home(pass, band));
}

void smalti_train_go_to_shard(struct smalti_dit_pass *pass, int64_t band, int shard)
{
	smalti_train_go(pass, smalti_train_part_of(pass, band, shard));
}
