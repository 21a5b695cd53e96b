/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/forward.h"
#include "graphs/pixart/block.h"
#include "rt/devices_alone.h"
#include "rt/task.h"

/* Embeds a band, at its home in the first block. */
static void embed_band(const struct smalti_dit_forward *f, int branch, int64_t band, float input_scale,
		       const struct smalti_grid *x, struct smalti_value z)
{
	const struct smalti_linear *patch = &f->dit->patch;
	const struct smalti_position_table *table = smalti_dit_positions(f->conditions, band);
	smalti_dit_go_home(f, (struct smalti_dit_position){branch, 0}, band);
	smalti_insert(patch_embed, f->task_group,
		      (.x = smalti_grid_tile(x, band), .weight = smalti_weight_tile(patch->weight),
		       .bias = smalti_weight_tile(patch->bias), .positions = table->tile, .y = z.tile),
		      .rows = smalti_dit_rows(f, band), .in = patch->in, .out = patch->out,
		      .first = f->tokens->partition.first[band] - table->first, .columns = table->columns,
		      .input_scale = input_scale);
}

/* Returns a new list of the stream's values; NULL, with the task group broken, without memory. */
static struct smalti_value *new_stream(const struct smalti_dit_forward *f)
{
	const int64_t bands = f->tokens->partition.bands;
	struct smalti_value *z = smalti_task_group_calloc(f->task_group, bands, sizeof(*z));
	for (int64_t b = 0; z && b < bands; b++) {
		z[b] = smalti_value_new(f->tape, smalti_dit_rows(f, b), f->dit->config.width, SMALTI_F32);
		smalti_tile_set_transfer_kind(z[b].tile, SMALTI_TRANSFER_SUMS);
	}
	return z;
}

/* Makes the step's modulation of a table, in the tile of the pass. */
static void modulate(const struct smalti_dit_forward *f, struct smalti_weight *table, int64_t rows,
		     struct smalti_value embedding, int64_t period, struct smalti_value *y)
{
	smalti_layer_modulation(f->tape, table, rows, embedding, period, f->pass, y);
	smalti_tile_set_transfer_kind(y->tile, SMALTI_TRANSFER_MODULATION);
}

static const struct smalti_dit_task final_task = {SMALTI_GRAIN_HALF_BLOCK, "final layer", NULL};

/* Returns the output projection of LN-modulated x (3.7), at its home in the last block. */
static struct smalti_grid project_out(const struct smalti_dit_forward *f, int branch,
				      struct smalti_value final, const struct smalti_value *x)
{
	const struct smalti_partition *bands = &f->tokens->partition;
	const struct smalti_dit_position at = {branch, f->dit->config.layers - 1};
	struct smalti_grid v = {bands,
				smalti_task_group_calloc(f->task_group, bands->bands, sizeof(*v.tile))};
	for (int64_t b = 0; v.tile && b < bands->bands; b++) {
		smalti_dit_go_home(f, at, b);
		smalti_task_group_bottom_level(f->task_group, f->behind);
		if (!smalti_dit_together(f)) /* the next pass waits for it */
			smalti_dit_begin_phase(f, b, at.block, MLP);
		smalti_dit_begin_band(f, at, b, &final_task);
		v.tile[b] = smalti_dit_project_out(f, final, x[b]).tile;
		smalti_tile_set_transfer_kind(v.tile[b], SMALTI_TRANSFER_STREAM);
		smalti_tape_end_task(f->tape);
	}
	return v;
}

static bool goes_on(const struct smalti_dit_forward *f)
{
	return !smalti_task_group_broken(f->task_group);
}

static void copy_bands(const struct smalti_dit_forward *f, struct smalti_dit_range range,
		       const struct smalti_value *x, const struct smalti_value *y)
{
	for (int64_t b = range.begin; b < range.end; b++) {
		smalti_dit_go_home(f, (struct smalti_dit_position){0, 0}, b);
		smalti_insert(copy, f->task_group, (.x = x[b].tile, .y = y[b].tile),
			      .bytes = x[b].rows * x[b].columns * (int64_t)sizeof(float));
	}
}

/* Returns how many branches are computed before the first cross-attention. Branches at the same parts share
 * it, as only prompts differ. */
static int branches_at_first(const struct smalti_dit_forward *f, int count)
{
	return f->strategy->parts[SMALTI_AXIS_BRANCH] > 1 ? count : 1;
}

/* Says what a pass computes. */
struct pass {
	struct smalti_value *const *z; /* the stream of each branch */
	struct smalti_cross_cache *const *caches;
	int count;                            /* of branches */
	struct smalti_step_cache *step_cache; /* NULL: every block is computed */
};

static bool is_skipped(const struct pass *pass, int branch, int64_t block)
{
	return pass->step_cache && block > 0 && !smalti_step_cache_computes(pass->step_cache, branch);
}

/* Inserts the self-attention of the first block. */
static void attend_first(const struct smalti_dit_forward *f, struct smalti_dit_range range,
			 const struct pass *pass)
{
	const int first = branches_at_first(f, pass->count);
	smalti_task_group_at(f->task_group, 0, -1);
	for (int k = 0; k < first; k++)
		smalti_dit_attend(f, (struct smalti_dit_position){k, 0}, range, pass->z[k]);
	for (int k = first; k < pass->count; k++)
		copy_bands(f, range, pass->z[0], pass->z[k]);
}

/* Inserts the blocks from `begin` to `end`. */
static void run_blocks(const struct smalti_dit_forward *f, struct smalti_dit_range range, int64_t begin,
		       int64_t end, const struct pass *pass)
{
	for (int64_t block = begin; block < end; block++) {
		smalti_task_group_at(f->task_group, block, -1);
		for (int k = 0; k < pass->count && goes_on(f); k++)
			if (!is_skipped(pass, k, block))
				smalti_dit_block(f, (struct smalti_dit_position){k, block}, range, block == 0,
						 pass->caches[k], false, pass->z[k]);
	}
	smalti_task_group_at(f->task_group, -1, -1);
}

/* Runs patches through the stages of layers one behind the other; in the warm-up, together. */
static void run_patches(const struct smalti_dit_forward *f, const struct pass *pass)
{
	const int64_t bands = f->tokens->partition.bands;
	const bool together = smalti_dit_together(f);
	struct smalti_dit_range range = {0, 0};
	for (; range.begin < bands; range.begin = range.end) {
		while (range.end < bands &&
		       (together || f->tokens->band[range.end].patch == f->tokens->band[range.begin].patch))
			range.end++;
		attend_first(f, range, pass);
		run_blocks(f, range, 0, f->dit->config.layers, pass);
	}
}

/* Runs the first block, and decides what is skipped behind it. */
static void run_first(const struct smalti_dit_forward *f, const struct pass *pass)
{
	const struct smalti_dit_range all = {0, f->tokens->partition.bands};
	for (int k = 0; k < pass->count; k++)
		smalti_step_cache_begin(pass->step_cache, k,
					pass->z[k < branches_at_first(f, pass->count) ? k : 0]);
	attend_first(f, all, pass);
	run_blocks(f, all, 0, 1, pass);
	smalti_step_cache_decide(pass->step_cache, f->pass, pass->z);
}

/* Returns the output of a branch whose remaining blocks were inserted or skipped. */
static struct smalti_grid cached_output(const struct smalti_dit_forward *f, struct smalti_value final,
					const struct pass *pass, int k)
{
	struct smalti_step_cache *cache = pass->step_cache;
	struct smalti_grid v = {NULL, NULL};
	if (smalti_step_cache_computes(cache, k)) {
		v = project_out(f, k, final, pass->z[k]);
		smalti_step_cache_computed(cache, k, pass->z[k], &v);
	}
	for (int guess = 0; guess < smalti_step_cache_guesses(cache, k) && goes_on(f); guess++) {
		smalti_step_cache_guess(cache, k, guess, pass->z[k]);
		struct smalti_grid guessed = project_out(f, k, final, pass->z[k]), unused = guessed;
		if (smalti_step_cache_computes(cache, k))
			smalti_step_cache_compare(cache, k, guess, &guessed, &v);
		if (smalti_step_cache_skips(cache, k)) {
			unused = v;
			v = guessed;
		}
		smalti_grid_release(&unused);
	}
	smalti_step_cache_end(cache, k);
	return v;
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
		if (!pass->stream[k])
			pass->stream[k] = new_stream(f);
		for (int64_t b = 0;
		     pass->stream[k] && k < branches_at_first(f, count) && b < x->partition->bands; b++)
			embed_band(f, k, b, input_scale, x, pass->stream[k][b]);
	}
}

static const struct smalti_dit_task pass_task = {SMALTI_GRAIN_PASS, "pass", NULL};

/* Begins what may be one task, of so many blocks of all branches. */
static void begin_pass(const struct smalti_dit_forward *f, const struct pass *pass, int64_t blocks)
{
	const struct smalti_partition *bands = &f->tokens->partition;
	smalti_dit_begin_task(f, &pass_task,
			      (double)bands->first[bands->bands] * (double)(blocks * pass->count),
			      SMALTI_ANYWHERE);
}

static void run(struct smalti_dit_forward *f, float input_scale, const struct smalti_grid *x,
		struct pass *pass, struct smalti_grid *v)
{
	struct smalti_dit_streams *streams = &f->conditions->pass;
	const int64_t layers = f->dit->config.layers;
	begin(f, input_scale, x, pass->count, streams);
	pass->z = streams->stream;
	if (pass->step_cache && goes_on(f))
		run_first(f, pass);
	begin_pass(f, pass, layers);
	if (pass->step_cache && goes_on(f))
		run_blocks(f, (struct smalti_dit_range){0, x->partition->bands}, 1, layers, pass);
	else if (goes_on(f))
		run_patches(f, pass);
	for (int k = 0; k < pass->count && goes_on(f); k++)
		v[k] = pass->step_cache ? cached_output(f, streams->final, pass, k)
					: project_out(f, k, streams->final, pass->z[k]);
	smalti_task_group_bottom_level(f->task_group, f->behind);
	smalti_tape_end_task(f->tape);
	smalti_task_group_place(f->task_group, SMALTI_ANYWHERE);
	if (smalti_devices_alone_place(f->task_group->session) == SMALTI_ANYWHERE)
		smalti_dit_streams_release(f->conditions);
}

void smalti_dit_forward(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
			struct smalti_conditions *conditions, int64_t step, float input_scale,
			const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
			struct smalti_step_cache *step_cache, struct smalti_grid *v)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	for (int k = 0; k < count; k++)
		v[k] = (struct smalti_grid){x->partition, NULL};
	if (smalti_task_group_broken(task_group))
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tape tape = {.task_group = task_group};
	struct smalti_dit_forward f = {.dit = dit,
				       .pass = step,
				       .task_group = task_group,
				       .tape = &tape,
				       .conditions = conditions,
				       .tokens = conditions->tokens,
				       .strategy = conditions->tokens->strategy,
				       .shards = conditions->shards};
	f.behind = (conditions->steps - 1 - step) *
		   (smalti_max(dit->config.layers * PHASES, f.strategy->patches) + 1);
	if (smalti_dit_forward_open(&f, &error) == 0)
		run(&f, input_scale, x, &(struct pass){NULL, caches, count, step_cache}, v);
	else
		smalti_task_group_break(task_group, &error);
	smalti_dit_forward_close(&f);
}
