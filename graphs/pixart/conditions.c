/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/conditions.h"
#include "graphs/linear.h"
#include "graphs/pixart/shards.h"
#include "kernels/conditioning.h"

/* Returns linear_2(SiLU(linear_1(sinusoid(values)))): [rows, width of the embedder]. */
static struct smalti_tile *embed(struct smalti_task_group *task_group,
				 const struct smalti_dit_embedder *embedder, const float *values,
				 int64_t rows)
{
	struct smalti_tile *numbers = smalti_tile_upload(task_group, rows, sizeof(float), values);
	struct smalti_tile *waves =
	    smalti_tile_new(task_group, rows, SMALTI_SINUSOID_SIZE * (int64_t)sizeof(float));
	smalti_insert(sinusoid, task_group, (.values = numbers, .y = waves), .rows = rows);
	struct smalti_tile *hidden = smalti_linear(task_group, &embedder->linear_1, rows, SMALTI_F32, waves,
						   SMALTI_EPILOGUE_SILU, SMALTI_F32);
	struct smalti_tile *y = smalti_linear(task_group, &embedder->linear_2, rows, SMALTI_F32, hidden,
					      SMALTI_EPILOGUE_NONE, SMALTI_F32);
	smalti_tile_release(numbers);
	smalti_tile_release(waves);
	smalti_tile_release(hidden);
	return y;
}

/* Inserts e += [r(height) ‖ r(width) ‖ a(height / width)], in pixels (3.3). */
static void add_micro_conditions(const struct smalti_dit *dit, struct smalti_task_group *task_group,
				 float height, float width, int64_t steps, struct smalti_tile *e)
{
	const float sides[2] = {height, width}, ratio[1] = {height / width};
	const int64_t third = dit->config.width / 3 * (int64_t)sizeof(float);
	struct smalti_tile *row = smalti_tile_new(task_group, 3, third);
	struct smalti_tile *resolution = embed(task_group, &dit->resolution, sides, 2);
	struct smalti_tile *aspect_ratio = embed(task_group, &dit->aspect_ratio, ratio, 1);
	smalti_insert(join, task_group, (.first = resolution, .second = aspect_ratio, .y = row),
		      .first_bytes = 2 * third, .second_bytes = third);
	smalti_insert(add_row, task_group, (.row = row, .y = e), .rows = steps, .dim = dit->config.width);
	smalti_tile_release(resolution);
	smalti_tile_release(aspect_ratio);
	smalti_tile_release(row);
}

/* Returns g = linear(SiLU(e)): six rows for each step. */
static struct smalti_tile *adaln_of(const struct smalti_dit *dit, struct smalti_task_group *task_group,
				    int64_t steps, struct smalti_tile *e)
{
	const int64_t width = dit->config.width;
	struct smalti_tile *activated = smalti_tile_new(task_group, steps, width * (int64_t)sizeof(float));
	smalti_insert(silu, task_group, (.x = e, .y = activated), .count = steps * width);
	struct smalti_tile *g = smalti_linear(task_group, &dit->adaln, steps, SMALTI_F32, activated,
					      SMALTI_EPILOGUE_NONE, SMALTI_F32);
	smalti_tile_release(activated);
	return g;
}

static struct smalti_tile *position_table(const struct smalti_dit *dit, struct smalti_task_group *task_group,
					  int64_t rows, int64_t columns)
{
	const struct smalti_transformer_config *c = &dit->config;
	struct smalti_tile *table =
	    smalti_tile_new(task_group, columns + rows, c->width / 2 * (int64_t)sizeof(float));
	smalti_insert(positions, task_group, (.table = table), .columns = columns, .rows = rows,
		      .dim = c->width, .base = c->sample_size / c->patch_size,
		      .interpolation_scale = c->interpolation_scale);
	return table;
}

/* Makes the image's position table, or one for each rank's slice as its own image. */
static void make_positions(const struct smalti_dit *dit, struct smalti_task_group *task_group,
			   struct smalti_conditions *conditions)
{
	const struct smalti_tokens *tokens = conditions->tokens;
	const int64_t count = tokens->partition.first[tokens->partition.bands];
	for (int rank = 0; rank < conditions->tables; rank++) {
		struct smalti_position_table *table = &conditions->positions[rank];
		int64_t end = count;
		if (conditions->tables > 1) {
			table->first = smalti_tokens_begin(tokens, rank);
			end = smalti_tokens_begin(tokens, rank + 1);
		}
		table->columns = smalti_tokens_columns(tokens, rank);
		if (end > table->first)
			table->tile = position_table(dit, task_group, (end - table->first) / table->columns,
						     table->columns);
	}
}

const struct smalti_position_table *smalti_dit_positions(const struct smalti_conditions *conditions,
							 int64_t band)
{
	return &conditions->positions[conditions->tables > 1 ? conditions->tokens->band[band].rank : 0];
}

static int64_t kept_count(const struct smalti_conditions *conditions)
{
	return SMALTI_DENOISER_MAX_BRANCHES * conditions->layers * conditions->shards->count *
	       conditions->tokens->partition.bands;
}

static int64_t caption_count(const struct smalti_conditions *conditions)
{
	return SMALTI_DENOISER_MAX_BRANCHES * conditions->layers * conditions->shards->count;
}

/* Allocates what the strategy needs. */
static int make_room(struct smalti_dit *dit, struct smalti_task_group *task_group,
		     struct smalti_conditions *conditions, struct smalti_error *error)
{
	const struct smalti_strategy *strategy = conditions->tokens->strategy;
	conditions->layers = dit->config.layers;
	conditions->tables = smalti_strategy_is_naive(strategy) ? strategy->parts[SMALTI_AXIS_RANK] : 1;
	conditions->positions = smalti_calloc(conditions->tables, sizeof(*conditions->positions), error);
	conditions->shards = smalti_dit_shards_of(dit, task_group, strategy);
	if (!conditions->positions || !conditions->shards)
		return -1;
	if (smalti_strategy_keeps(strategy))
		conditions->kept = smalti_calloc(kept_count(conditions), sizeof(*conditions->kept), error);
	conditions->captions = smalti_calloc(caption_count(conditions), sizeof(*conditions->captions), error);
	return conditions->captions && (conditions->kept || !smalti_strategy_keeps(strategy)) ? 0 : -1;
}

struct smalti_conditions *smalti_dit_conditions(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group,
						const struct smalti_tokens *tokens, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	const struct smalti_transformer_config *c = &dit->config;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_conditions *conditions = smalti_calloc(1, sizeof(*conditions), &error);
	if (conditions)
		conditions->tokens = tokens;
	if (!conditions || make_room(dit, task_group, conditions, &error) < 0) {
		smalti_task_group_break(task_group, &error);
		smalti_dit_release_conditions(conditions);
		return NULL;
	}
	smalti_task_group_place(task_group, smalti_strategy_place(tokens->strategy, 0, 0, 0, 0));
	conditions->steps = steps;
	conditions->timestep = embed(task_group, &dit->timestep, timesteps, steps);
	if (c->additional_conditions)
		add_micro_conditions(dit, task_group, (float)(height * vae_factor),
				     (float)(width * vae_factor), steps, conditions->timestep);
	conditions->adaln = adaln_of(dit, task_group, steps, conditions->timestep);
	make_positions(dit, task_group, conditions);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	return conditions;
}

static void release_tiles(struct smalti_tile **tiles, int64_t count)
{
	for (int64_t i = 0; tiles && i < count; i++)
		smalti_tile_release(tiles[i]);
	free(tiles);
}

void smalti_dit_streams_release(struct smalti_dit_streams *pass)
{
	smalti_tile_release(pass->modulation);
	smalti_tile_release(pass->final);
	for (int k = 0; k < SMALTI_DENOISER_MAX_BRANCHES; k++)
		smalti_grid_release(&pass->stream[k]);
	*pass = (struct smalti_dit_streams){.modulation = NULL};
}

void smalti_dit_release_conditions(struct smalti_conditions *conditions)
{
	if (!conditions)
		return;
	smalti_dit_streams_release(&conditions->pass);
	smalti_tile_release(conditions->timestep);
	smalti_tile_release(conditions->adaln);
	for (int i = 0; conditions->positions && i < conditions->tables; i++)
		smalti_tile_release(conditions->positions[i].tile);
	free(conditions->positions);
	if (conditions->shards) {
		release_tiles(conditions->kept, kept_count(conditions));
		release_tiles(conditions->captions, caption_count(conditions));
	}
	free(conditions);
}
