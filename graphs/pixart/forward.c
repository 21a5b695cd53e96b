/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/forward.h"
#include "graphs/linear.h"
#include "graphs/pixart/block.h"
#include "rt/devices_alone.h"
#include "rt/task.h"

/* A range of neighbouring bands. */
struct range {
	int64_t begin, end;
};

/* Embeds a band, at its home in the first block. */
static void embed_band(const struct smalti_dit_forward *f, int branch, int64_t band, float input_scale,
		       const struct smalti_grid *x, const struct smalti_grid *z)
{
	const struct smalti_linear *patch = &f->dit->patch;
	const struct smalti_position_table *table = smalti_dit_positions(f->conditions, band);
	smalti_dit_go_home(f, (struct smalti_dit_position){branch, 0}, band);
	smalti_insert(patch_embed, f->task_group,
		      (.x = smalti_grid_tile(x, band), .weight = smalti_weight_tile(patch->weight),
		       .bias = smalti_weight_tile(patch->bias), .positions = table->tile,
		       .y = smalti_grid_tile(z, band)),
		      .rows = smalti_dit_rows(f, band), .in = patch->in, .out = patch->out,
		      .first = f->tokens->partition.first[band] - table->first, .columns = table->columns,
		      .input_scale = input_scale);
}

static struct smalti_grid new_stream(const struct smalti_dit_forward *f)
{
	const struct smalti_grid z = smalti_grid_new(f->task_group, &f->tokens->partition, 1,
						     f->dit->config.width * (int64_t)sizeof(float));
	for (int64_t b = 0; b < f->tokens->partition.bands; b++)
		smalti_tile_moves_as(smalti_grid_tile(&z, b), SMALTI_MOVE_SUMS);
	return z;
}

/* Makes the step's modulation of a table, in a tile of the pass. */
static void modulate(const struct smalti_dit_forward *f, struct smalti_weight *table, int64_t rows,
		     struct smalti_tile *embedding, int64_t period, struct smalti_tile **y)
{
	const int64_t width = f->dit->config.width;
	if (!*y)
		*y = smalti_tile_new(f->task_group, rows, width * (int64_t)sizeof(float));
	smalti_insert(modulation, f->task_group,
		      (.table = smalti_weight_tile(table), .embedding = embedding, .y = *y), .rows = rows,
		      .dim = width, .period = period, .step = f->pass);
	smalti_tile_moves_as(*y, SMALTI_MOVE_MODULATION);
}

/* Returns the output projection of LN-modulated x (3.7), at its home in the last block. */
static struct smalti_grid project_out(const struct smalti_dit_forward *f, int branch,
				      struct smalti_tile *final, const struct smalti_grid *x)
{
	const struct smalti_linear *out = &f->dit->out;
	const double epsilon = 1e-6; /* fixed, independent of norm_eps */
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_grid v = {x->partition, NULL};
	v.tile = smalti_calloc(x->partition->bands, sizeof(*v.tile), &error);
	if (!v.tile)
		smalti_task_group_break(f->task_group, &error);
	for (int64_t b = 0; v.tile && b < x->partition->bands; b++) {
		smalti_dit_go_home(f, (struct smalti_dit_position){branch, f->dit->config.layers - 1}, b);
		smalti_task_group_path(f->task_group, f->behind);
		if (!smalti_dit_together(f)) /* the next pass waits for it */
			smalti_dit_begin_phase(f, b, f->dit->config.layers - 1, MLP);
		smalti_dit_begin_task(f, b, SMALTI_GRAIN_HALF_BLOCK, "final layer");
		struct smalti_tile *h =
		    smalti_dit_modulate(f, b, smalti_grid_tile(x, b), final, 0, 1, epsilon);
		v.tile[b] = smalti_linear(f->task_group, out, smalti_dit_rows(f, b), f->dit->compute, h,
					  SMALTI_EPILOGUE_NONE, SMALTI_F32);
		smalti_tile_moves_as(v.tile[b], SMALTI_MOVE_STREAM);
		smalti_tile_release(h);
		smalti_dit_end_task(f);
	}
	return v;
}

static bool goes_on(const struct smalti_dit_forward *f)
{
	return !smalti_task_group_broken(f->task_group);
}

/* Inserts the self-attention of the first block. */
static void attend_first(const struct smalti_dit_forward *f, int branch, struct range range,
			 const struct smalti_grid *z)
{
	const struct smalti_dit_position at = {branch, 0};
	struct smalti_dit_projections p;
	if (!smalti_dit_projections_new(f, &p))
		return;
	for (int64_t b = range.begin; b < range.end && goes_on(f); b++)
		smalti_dit_project(f, at, b, smalti_grid_tile(z, b), &p);
	for (int64_t b = range.begin; b < range.end && goes_on(f); b++) {
		smalti_dit_go_home(f, at, b);
		smalti_dit_begin_task(f, b, SMALTI_GRAIN_HALF_BLOCK, "attention");
		smalti_dit_self_attention(f, at, b, &p, smalti_grid_tile(z, b));
		smalti_dit_end_task(f);
	}
	smalti_dit_projections_release(f, at, &p);
}

static void copy_bands(const struct smalti_dit_forward *f, struct range range, const struct smalti_grid *x,
		       const struct smalti_grid *y)
{
	for (int64_t b = range.begin; b < range.end; b++) {
		smalti_dit_go_home(f, (struct smalti_dit_position){0, 0}, b);
		smalti_insert(copy, f->task_group, (.x = smalti_grid_tile(x, b), .y = smalti_grid_tile(y, b)),
			      .bytes = smalti_dit_rows(f, b) * f->dit->config.width * (int64_t)sizeof(float));
	}
}

/* Inserts a block of one branch. The first block's self-attention is inserted before. */
static void run_block(const struct smalti_dit_forward *f, struct smalti_dit_position at, struct range range,
		      struct smalti_cross_cache *cache, const struct smalti_grid *z)
{
	const bool single = f->tokens->partition.bands == 1; /* no task waits for other bands */
	struct smalti_dit_projections p;
	if (!smalti_dit_projections_new(f, &p))
		return;
	if (single)
		smalti_dit_begin_task(f, 0, SMALTI_GRAIN_BLOCK, "block");
	for (int64_t b = range.begin; at.block > 0 && b < range.end; b++)
		smalti_dit_project(f, at, b, smalti_grid_tile(z, b), &p);
	for (int64_t b = range.begin; b < range.end && goes_on(f); b++) {
		struct smalti_tile *band = smalti_grid_tile(z, b);
		smalti_dit_begin_task(f, b, SMALTI_GRAIN_HALF_BLOCK, "attention and MLP");
		if (at.block > 0)
			smalti_dit_self_attention(f, at, b, &p, band);
		smalti_dit_cross_attention(f, at, b, cache, band);
		smalti_dit_mlp(f, at, b, band);
		smalti_dit_end_task(f);
	}
	smalti_dit_projections_release(f, at, &p);
	if (single)
		smalti_dit_end_task(f);
}

/* Returns how many branches are computed before the first cross-attention. Branches at the same parts share
 * it, as only prompts differ. */
static int branches_at_first(const struct smalti_dit_forward *f, int count)
{
	return f->strategy->parts[SMALTI_AXIS_BRANCH] > 1 ? count : 1;
}

static void run_blocks(const struct smalti_dit_forward *f, struct range range, const struct smalti_grid *z,
		       struct smalti_cross_cache *const *caches, int count)
{
	smalti_task_group_at(f->task_group, 0, -1);
	for (int k = 0; k < branches_at_first(f, count); k++)
		attend_first(f, k, range, &z[k]);
	for (int k = branches_at_first(f, count); k < count; k++)
		copy_bands(f, range, &z[0], &z[k]);
	for (int64_t block = 0; block < f->dit->config.layers; block++) {
		smalti_task_group_at(f->task_group, block, -1);
		for (int k = 0; k < count && goes_on(f); k++)
			run_block(f, (struct smalti_dit_position){k, block}, range, caches[k], &z[k]);
	}
	smalti_task_group_at(f->task_group, -1, -1);
}

/* Runs patches through the stages of layers one behind the other; in the warm-up, together. */
static void run_patches(const struct smalti_dit_forward *f, const struct smalti_grid *z,
			struct smalti_cross_cache *const *caches, int count)
{
	const int64_t bands = f->tokens->partition.bands;
	const bool together = smalti_dit_together(f);
	struct range range = {0, 0};
	for (; range.begin < bands; range.begin = range.end) {
		while (range.end < bands &&
		       (together || f->tokens->band[range.end].patch == f->tokens->band[range.begin].patch))
			range.end++;
		run_blocks(f, range, z, caches, count);
	}
}

/* Allocates the lists of the keys of one attention. */
static bool make_room(struct smalti_dit_forward *f)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t bands = f->tokens->partition.bands;
	f->keys.kv = smalti_calloc(bands, sizeof(*f->keys.kv), &error);
	f->keys.rows = smalti_calloc(bands, sizeof(*f->keys.rows), &error);
	f->ranks = smalti_calloc(bands, sizeof(*f->ranks), &error);
	if (f->keys.kv && f->keys.rows && f->ranks)
		return true;
	smalti_task_group_break(f->task_group, &error);
	return false;
}

static void free_room(const struct smalti_dit_forward *f)
{
	free(f->keys.kv);
	free(f->keys.rows);
	free(f->ranks);
}

/* Writes the step's values into tiles, because repeated commands keep their first arguments. */
static void begin(struct smalti_dit_forward *f, float input_scale, const struct smalti_grid *x, int count,
		  struct smalti_dit_streams *pass)
{
	smalti_dit_begin_phase(f, 0, 0, KEYS);
	smalti_task_group_place(f->task_group, smalti_strategy_place(f->strategy, 0, 0, 0, 0));
	modulate(f, f->dit->block_tables, f->dit->config.layers * BLOCK_ROWS, f->conditions->adaln,
		 BLOCK_ROWS, &pass->modulation);
	modulate(f, f->dit->final_table, 2, f->conditions->timestep, 1, &pass->final);
	f->modulation = pass->modulation;
	for (int k = 0; k < count; k++) {
		if (!pass->stream[k].tile)
			pass->stream[k] = new_stream(f);
		for (int64_t b = 0; k < branches_at_first(f, count) && b < x->partition->bands; b++)
			embed_band(f, k, b, input_scale, x, &pass->stream[k]);
	}
}

static void run(struct smalti_dit_forward *f, float input_scale, const struct smalti_grid *x,
		struct smalti_cross_cache *const *caches, int count, struct smalti_grid *v)
{
	struct smalti_dit_streams *pass = &f->conditions->pass;
	begin(f, input_scale, x, count, pass);
	smalti_dit_begin_pass(f, count);
	run_patches(f, pass->stream, caches, count);
	for (int k = 0; k < count; k++)
		v[k] = project_out(f, k, pass->final, &pass->stream[k]);
	smalti_task_group_path(f->task_group, f->behind);
	smalti_dit_end_task(f);
	smalti_task_group_place(f->task_group, SMALTI_ANYWHERE);
	if (smalti_devices_alone_place(f->task_group->session) == SMALTI_ANYWHERE)
		smalti_dit_streams_release(pass);
}

void smalti_dit_forward(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
			struct smalti_conditions *conditions, int64_t step, float input_scale,
			const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
			struct smalti_grid *v)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	for (int k = 0; k < count; k++)
		v[k] = (struct smalti_grid){x->partition, NULL};
	if (smalti_task_group_broken(task_group))
		return;
	struct smalti_dit_forward f = {.dit = dit,
				       .pass = step,
				       .task_group = task_group,
				       .conditions = conditions,
				       .tokens = conditions->tokens,
				       .strategy = conditions->tokens->strategy,
				       .shards = conditions->shards};
	f.behind = (conditions->steps - 1 - step) *
		   (smalti_max(dit->config.layers * PHASES, f.strategy->patches) + 1);
	if (make_room(&f))
		run(&f, input_scale, x, caches, count, v);
	free_room(&f);
}
