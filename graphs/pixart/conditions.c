/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/conditions.h"
#include "graphs/pixart/shards.h"
#include "kernels/conditioning.h"

/* Returns linear_2(SiLU(linear_1(sinusoid(values)))): [rows, width of the embedder]. */
static struct smalti_value embed(struct smalti_tape *tape, const struct smalti_dit_embedder *embedder,
				 const float *values, int64_t rows)
{
	struct smalti_tile *numbers = smalti_tile_upload(tape->task_group, rows, sizeof(float), values);
	struct smalti_value waves = smalti_value_new(tape, rows, SMALTI_SINUSOID_SIZE, SMALTI_F32);
	smalti_value_set_constant(tape, waves, true);
	smalti_insert(sinusoid, tape->task_group, (.values = numbers, .y = waves.tile), .rows = rows);
	struct smalti_value hidden =
	    smalti_layer_activated(tape, &embedder->linear_1, waves, SMALTI_EPILOGUE_SILU, SMALTI_F32);
	const struct smalti_value y = smalti_layer_linear(tape, &embedder->linear_2, hidden, SMALTI_F32);
	smalti_tile_release(numbers);
	smalti_value_release(tape, &waves);
	smalti_value_release(tape, &hidden);
	return y;
}

/* Takes the gradient of some thirds of a row. */
static void take_thirds(struct smalti_tape *tape, struct smalti_tile *row, int64_t first,
			struct smalti_value to)
{
	bool add;
	const int64_t third = to.columns * (int64_t)sizeof(float);
	smalti_insert(slice_columns, tape->task_group, (.x = row, .y = smalti_tape_into_any(tape, to, &add)),
		      .rows = 1, .parts = 1, .in = 3 * third, .first = first * third,
		      .columns = to.rows * third);
}

static void micro_conditions_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	struct smalti_tile *ge = smalti_tape_gradient(tape, r->y);
	take_thirds(tape, ge, 0, r->x);
	take_thirds(tape, ge, 2, r->added);
}

static const struct smalti_layer micro_conditions_layer = {NULL, micro_conditions_backward};

/* Inserts e += [r(height) ‖ r(width) ‖ a(height / width)], in pixels (3.3). */
static void add_micro_conditions(struct smalti_tape *tape, const struct smalti_dit *dit,
				 const struct smalti_dit_conditioning *conditioning, struct smalti_value e)
{
	const int64_t third = dit->config.width / 3 * (int64_t)sizeof(float);
	struct smalti_tile *row = smalti_tile_new(tape->task_group, 3, third);
	struct smalti_value sides = embed(tape, &dit->resolution, conditioning->sides, 2);
	struct smalti_value ratio = embed(tape, &dit->aspect_ratio, &conditioning->ratio, 1);
	smalti_insert(concat, tape->task_group, (.first = sides.tile, .second = ratio.tile, .y = row),
		      .first_bytes = 2 * third, .second_bytes = third);
	smalti_insert(add_row, tape->task_group, (.row = row, .y = e.tile), .rows = e.rows, .dim = e.columns);
	const struct smalti_record r = {
	    .layer = &micro_conditions_layer, .x = sides, .added = ratio, .y = e, .adds = true};
	smalti_tape_record(tape, &r);
	smalti_value_release(tape, &sides);
	smalti_value_release(tape, &ratio);
	smalti_tile_release(row);
}

enum { ADALN_ROWS = 6 };

/* Returns g = linear(SiLU(e)): six rows for each step. */
static struct smalti_value adaln_of(struct smalti_tape *tape, const struct smalti_dit *dit,
				    struct smalti_value e)
{
	struct smalti_value activated = smalti_layer_silu(tape, e);
	const struct smalti_value g = smalti_layer_linear(tape, &dit->adaln, activated, SMALTI_F32);
	smalti_value_release(tape, &activated);
	return (struct smalti_value){g.tile, ADALN_ROWS * e.rows, e.columns, g.dtype, g.number};
}

struct smalti_value smalti_dit_caption(struct smalti_tape *tape, const struct smalti_dit *dit,
				       struct smalti_value text)
{
	if (!dit->config.caption_channels)
		return text;
	struct smalti_value hidden =
	    smalti_layer_activated(tape, &dit->caption.linear_1, text, SMALTI_EPILOGUE_GELU, dit->compute);
	const struct smalti_value caption =
	    smalti_layer_linear(tape, &dit->caption.linear_2, hidden, SMALTI_F32);
	smalti_value_release(tape, &hidden);
	return caption;
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
static int make_room(struct smalti_dit *dit, struct smalti_conditions *conditions, struct smalti_error *error)
{
	const struct smalti_strategy *strategy = conditions->tokens->strategy;
	conditions->layers = dit->config.layers;
	conditions->tables = smalti_strategy_is_naive(strategy) ? strategy->parts[SMALTI_AXIS_RANK] : 1;
	conditions->positions = smalti_calloc(conditions->tables, sizeof(*conditions->positions), error);
	conditions->shards = smalti_dit_shards_of(dit, strategy, error);
	if (!conditions->positions || !conditions->shards)
		return -1;
	if (smalti_strategy_keeps(strategy))
		conditions->kept = smalti_calloc(kept_count(conditions), sizeof(*conditions->kept), error);
	conditions->captions = smalti_calloc(caption_count(conditions), sizeof(*conditions->captions), error);
	return conditions->captions && (conditions->kept || !smalti_strategy_keeps(strategy)) ? 0 : -1;
}

struct smalti_conditions *smalti_dit_conditions_on(struct smalti_tape *tape, struct smalti_dit *dit,
						   const struct smalti_tokens *tokens,
						   const struct smalti_dit_conditioning *conditioning)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_conditions *conditions = smalti_calloc(1, sizeof(*conditions), &error);
	if (conditions)
		conditions->tokens = tokens;
	if (!conditions || make_room(dit, conditions, &error) < 0) {
		smalti_task_group_break(tape->task_group, &error);
		smalti_dit_release_conditions(conditions);
		return NULL;
	}
	conditions->steps = conditioning->steps;
	conditions->timestep = embed(tape, &dit->timestep, conditioning->timesteps, conditioning->steps);
	if (dit->config.additional_conditions)
		add_micro_conditions(tape, dit, conditioning, conditions->timestep);
	conditions->adaln = adaln_of(tape, dit, conditions->timestep);
	make_positions(dit, tape->task_group, conditions);
	return conditions;
}

struct smalti_conditions *smalti_dit_conditions(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group,
						const struct smalti_tokens *tokens, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor)
{
	struct smalti_tape tape = {.task_group = task_group};
	const float sides[2] = {(float)(height * vae_factor), (float)(width * vae_factor)};
	const struct smalti_dit_conditioning conditioning = {
	    timesteps, steps, {sides[0], sides[1]}, sides[0] / sides[1]};
	smalti_task_group_place(task_group, smalti_strategy_place(tokens->strategy, 0, 0, 0, 0));
	struct smalti_conditions *conditions =
	    smalti_dit_conditions_on(&tape, (struct smalti_dit *)denoiser, tokens, &conditioning);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	return conditions;
}

static void release_values(struct smalti_value *values, int64_t count)
{
	for (int64_t i = 0; values && i < count; i++)
		smalti_tile_release(values[i].tile);
	free(values);
}

void smalti_dit_streams_release(struct smalti_conditions *conditions)
{
	struct smalti_dit_streams *pass = &conditions->pass;
	smalti_tile_release(pass->modulation.tile);
	smalti_tile_release(pass->final.tile);
	for (int k = 0; k < SMALTI_DENOISER_MAX_BRANCHES; k++)
		release_values(pass->stream[k], conditions->tokens->partition.bands);
	*pass = (struct smalti_dit_streams){.stream = {NULL}};
}

/* The values of a tape that records belong to the tape. */
void smalti_dit_release_conditions(struct smalti_conditions *conditions)
{
	if (!conditions)
		return;
	smalti_dit_streams_release(conditions);
	if (conditions->timestep.number == 0)
		smalti_tile_release(conditions->timestep.tile);
	if (conditions->adaln.number == 0)
		smalti_tile_release(conditions->adaln.tile);
	for (int i = 0; conditions->positions && i < conditions->tables; i++)
		smalti_tile_release(conditions->positions[i].tile);
	free(conditions->positions);
	if (conditions->shards) {
		release_values(conditions->kept, kept_count(conditions));
		release_values(conditions->captions, caption_count(conditions));
	}
	free(conditions);
}
