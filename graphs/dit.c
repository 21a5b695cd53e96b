/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/dit.h"
#include "graphs/attention.h"
#include "graphs/dit_conditions.h"
#include "graphs/dit_weights.h"
#include "graphs/linear.h"
#include "rt/task.h"

/* Rows of a block's modulation (3.5). */
enum { SHIFT_ATTENTION, SCALE_ATTENTION, GATE_ATTENTION, SHIFT_MLP, SCALE_MLP, GATE_MLP, BLOCK_ROWS };

static int64_t cross_cache_bytes(const struct smalti_denoiser *denoiser, int64_t tokens)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const int64_t row = dit->config.width * (int64_t)sizeof(float);
	return tokens * (2 * dit->config.layers + 3) * row;
}

static int64_t working_bytes(const struct smalti_denoiser *denoiser, int64_t tokens, int64_t band_tokens,
			     int branches)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const int64_t row = dit->config.width * (int64_t)sizeof(float);
	/* each branch: x, q and kv of all bands; each band in work: h, attention's state and result, the MLP
	 */
	const int64_t band = tokens < band_tokens ? tokens : band_tokens;
	return branches * tokens * 4 * row + 2 * branches * band * 8 * row;
}

static double flops_of(const struct smalti_denoiser *denoiser, int64_t tokens, const int64_t *prompt_tokens,
		       int count)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const struct smalti_transformer_config *c = &dit->config;
	const double n = (double)tokens, width = (double)c->width, blocks = (double)c->layers;
	const double patch = (double)(c->patch_size * c->patch_size);
	const double self = 8 * n * width * width + 4 * n * n * width;
	const double mlp = 16 * n * width * width;
	const double edges[2] = {2 * n * patch * (double)c->in_channels * width,
				 2 * n * patch * (double)c->out_channels * width};
	/* the first self-attention is common to all */
	double flops = edges[0] + self;
	for (int k = 0; k < count; k++) {
		const double keys = (double)prompt_tokens[k];
		const double cross = keys > 1 ? 4 * n * width * (width + keys) : n * width;
		flops += (blocks - 1) * self + blocks * (cross + mlp) + edges[1];
	}
	return flops;
}

/* Captions */

struct smalti_cross_cache {
	int64_t tokens, layers;
	struct smalti_partition partition; /* one band */
	/* One per block: keys and values; of a prompt of one token the row [1, width] that its
	 * cross-attention adds to every token, as a single key has all the weight whatever is asked. */
	struct smalti_tile *block[];
};

static struct smalti_heads heads_of(const struct smalti_dit *dit)
{
	return (struct smalti_heads){dit->config.heads, dit->config.head_dim, dit->compute};
}

/* Takes a single token's key and value; the query does not matter. */
static struct smalti_tile *constant_row(const struct smalti_dit *dit, struct smalti_task_group *task_group,
					int64_t i, const struct smalti_partition *partition,
					struct smalti_tile *kv)
{
	const struct smalti_heads heads = heads_of(dit);
	struct smalti_tile *value = smalti_attend(task_group, &heads, 1, kv, partition, 1, &kv);
	struct smalti_tile *row = smalti_linear(task_group, &dit->blocks[i].cross.out, 1, dit->compute, value,
						SMALTI_EPILOGUE_NONE, SMALTI_F32);
	smalti_tile_release(value);
	smalti_tile_release(kv);
	return row;
}

static struct smalti_cross_cache *make_cross_cache(struct smalti_denoiser *denoiser,
						   struct smalti_task_group *task_group,
						   struct smalti_tile *text, int64_t tokens)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_transformer_config *c = &dit->config;
	struct smalti_cross_cache *cache = smalti_calloc(
	    1, (int64_t)sizeof(*cache) + c->layers * (int64_t)sizeof(struct smalti_tile *), &error);
	if (!cache || smalti_partition_even(&cache->partition, tokens, tokens, &error) < 0) {
		free(cache);
		smalti_task_group_break(task_group, &error);
		return NULL;
	}
	cache->tokens = tokens;
	cache->layers = c->layers;
	struct smalti_tile *projected = text;
	if (c->caption_channels) {
		struct smalti_tile *hidden =
		    smalti_linear(task_group, &dit->caption.linear_1, tokens, SMALTI_F32, text,
				  SMALTI_EPILOGUE_GELU, dit->compute);
		projected = smalti_linear(task_group, &dit->caption.linear_2, tokens, dit->compute, hidden,
					  SMALTI_EPILOGUE_NONE, SMALTI_F32);
		smalti_tile_release(hidden);
	}
	for (int64_t i = 0; i < c->layers; i++) {
		struct smalti_tile *kv =
		    smalti_linear(task_group, &dit->blocks[i].cross.kv, tokens, SMALTI_F32, projected,
				  SMALTI_EPILOGUE_NONE, dit->compute);
		cache->block[i] = tokens == 1 ? constant_row(dit, task_group, i, &cache->partition, kv) : kv;
	}
	if (projected != text)
		smalti_tile_release(projected);
	return cache;
}

static void release_cross_cache(struct smalti_cross_cache *cache)
{
	if (!cache)
		return;
	for (int64_t i = 0; i < cache->layers; i++)
		smalti_tile_release(cache->block[i]);
	smalti_partition_free(&cache->partition);
	free(cache);
}

/* What a task costs beside its arithmetic is 1 % of so many operations. */
static const double smallest_task = 2e8;

/* Parts of a block, by what is behind them: every band's queries wait for the keys of all. */
enum phase { MLP, CROSS_ATTENTION, ATTENTION, KEYS, PHASES };

/* A forward under way. */
struct forward {
	int64_t behind; /* phases of later forwards */
	struct smalti_dit *dit;
	struct smalti_task_group *task_group;
	const struct smalti_partition *partition;
	struct smalti_tile *modulation; /* [layers·6, width] */
	bool small;                     /* operations of a band are too small to be tasks */
};

static int64_t rows_of(const struct forward *f, int64_t band)
{
	return smalti_partition_rows(f->partition, band);
}

/* Whether a band's way through a block is less than a task should be. */
static bool is_small(const struct smalti_dit *dit, const struct smalti_partition *partition)
{
	const double width = (double)dit->config.width, rows = (double)smalti_partition_rows(partition, 0);
	return 28 * rows * width * width + 4 * rows * (double)partition->first[partition->bands] * width <
	       smallest_task;
}

static void begin_phase(const struct forward *f, int64_t block, enum phase phase)
{
	smalti_task_group_path(f->task_group,
			       f->behind + (f->dit->config.layers - 1 - block) * PHASES + phase + 1);
}

static void begin_half_block(const struct forward *f, const char *name)
{
	smalti_fuse_begin(f->task_group, SMALTI_GRAIN_HALF_BLOCK, f->small, name);
}

static struct smalti_grid new_tokens(const struct forward *f, enum smalti_dtype dtype)
{
	return smalti_grid_new(f->task_group, f->partition, 1,
			       f->dit->config.width * smalti_dtype_bytes(dtype));
}

/* LN(x)·(1 + scale) + shift of one band. */
static struct smalti_tile *modulate(const struct forward *f, int64_t band, struct smalti_tile *x,
				    struct smalti_tile *modulation, int64_t shift_row, int64_t scale_row,
				    double epsilon)
{
	const int64_t width = f->dit->config.width;
	struct smalti_tile *h =
	    smalti_tile_new(f->task_group, rows_of(f, band), width * smalti_dtype_bytes(f->dit->compute));
	smalti_insert(ln_modulate, f->task_group, (.x = x, .modulation = modulation, .y = h),
		      .rows = rows_of(f, band), .dim = width, .shift_row = shift_row, .scale_row = scale_row,
		      .epsilon = (float)epsilon, .dtype = f->dit->compute);
	return h;
}

/* What a block's self-attention reads: queries, and keys with values, of every band. */
struct projections {
	struct smalti_grid q, kv;
};

static struct smalti_grid no_tokens(const struct forward *f)
{
	struct smalti_grid grid = {f->partition, NULL};
	struct smalti_error error = SMALTI_NO_ERROR;
	grid.tile = smalti_calloc(f->partition->bands, sizeof(*grid.tile), &error);
	if (!grid.tile)
		smalti_task_group_break(f->task_group, &error);
	return grid;
}

/* Of LN-modulated x. */
static struct projections project(const struct forward *f, int64_t block, const struct smalti_grid *x)
{
	const struct smalti_dit_attention *w = &f->dit->blocks[block].self;
	const enum smalti_dtype dtype = f->dit->compute;
	const int64_t first_row = block * BLOCK_ROWS;
	struct projections p = {no_tokens(f), no_tokens(f)};
	begin_phase(f, block, KEYS);
	for (int64_t b = 0; b < f->partition->bands && !smalti_task_group_broken(f->task_group); b++) {
		begin_half_block(f, "norm and projections");
		struct smalti_tile *h =
		    modulate(f, b, smalti_grid_tile(x, b), f->modulation, first_row + SHIFT_ATTENTION,
			     first_row + SCALE_ATTENTION, f->dit->config.norm_eps);
		p.q.tile[b] =
		    smalti_linear(f->task_group, &w->q, rows_of(f, b), dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		p.kv.tile[b] = smalti_linear(f->task_group, &w->kv, rows_of(f, b), dtype, h,
					     SMALTI_EPILOGUE_NONE, dtype);
		smalti_tile_release(h);
		smalti_fuse_end(f->task_group);
	}
	return p;
}

static void release_projections(struct projections *p)
{
	smalti_grid_release(&p->q);
	smalti_grid_release(&p->kv);
}

/* A band of x += gate ⊙ O(attention): its queries against the keys of all bands. */
static void self_attention(const struct forward *f, int64_t block, int64_t b, const struct projections *p,
			   struct smalti_tile *x)
{
	const struct smalti_dit_attention *w = &f->dit->blocks[block].self;
	const struct smalti_heads heads = heads_of(f->dit);
	begin_phase(f, block, ATTENTION);
	struct smalti_tile *o =
	    smalti_attend(f->task_group, &heads, rows_of(f, b), p->q.tile[b], f->partition, 1, p->kv.tile);
	smalti_linear_gate_add(f->task_group, &w->out, rows_of(f, b), f->dit->compute, o, f->modulation,
			       block * BLOCK_ROWS + GATE_ATTENTION, x);
	smalti_tile_release(o);
}

/* x += O(attention(x, cache)): neither norm, nor modulation, nor gate. */
static void cross_attention(const struct forward *f, int64_t block, int64_t b,
			    struct smalti_cross_cache *cache, struct smalti_tile *x)
{
	const struct smalti_dit_attention *w = &f->dit->blocks[block].cross;
	const struct smalti_heads heads = heads_of(f->dit);
	const enum smalti_dtype dtype = f->dit->compute;
	begin_phase(f, block, CROSS_ATTENTION);
	if (cache->tokens == 1) {
		smalti_insert(add_row, f->task_group, (.row = cache->block[block], .y = x),
			      .rows = rows_of(f, b), .dim = f->dit->config.width);
		return;
	}
	struct smalti_tile *q =
	    smalti_linear(f->task_group, &w->q, rows_of(f, b), SMALTI_F32, x, SMALTI_EPILOGUE_NONE, dtype);
	struct smalti_tile *o = smalti_attend(f->task_group, &heads, rows_of(f, b), q, &cache->partition, 1,
					      &cache->block[block]);
	smalti_linear_add(f->task_group, &w->out, rows_of(f, b), dtype, o, x);
	smalti_tile_release(q);
	smalti_tile_release(o);
}

/* x += gate ⊙ MLP(LN-modulated x). */
static void mlp(const struct forward *f, int64_t block, int64_t b, struct smalti_tile *x)
{
	const struct smalti_dit_block *w = &f->dit->blocks[block];
	const enum smalti_dtype dtype = f->dit->compute;
	const int64_t first_row = block * BLOCK_ROWS;
	begin_phase(f, block, MLP);
	struct smalti_tile *h = modulate(f, b, x, f->modulation, first_row + SHIFT_MLP, first_row + SCALE_MLP,
					 f->dit->config.norm_eps);
	struct smalti_tile *hidden =
	    smalti_linear(f->task_group, &w->ff_in, rows_of(f, b), dtype, h, SMALTI_EPILOGUE_GELU, dtype);
	smalti_linear_gate_add(f->task_group, &w->ff_out, rows_of(f, b), dtype, hidden, f->modulation,
			       first_row + GATE_MLP, x);
	smalti_tile_release(h);
	smalti_tile_release(hidden);
}

static struct smalti_grid embed_patches(const struct forward *f, const struct smalti_conditions *conditions,
					float input_scale, const struct smalti_grid *x)
{
	const struct smalti_linear *patch = &f->dit->patch;
	struct smalti_grid z = new_tokens(f, SMALTI_F32);
	for (int64_t b = 0; b < f->partition->bands; b++)
		smalti_insert(patch_embed, f->task_group,
			      (.x = smalti_grid_tile(x, b), .weight = smalti_weight_tile(patch->weight),
			       .bias = smalti_weight_tile(patch->bias), .positions = conditions->positions,
			       .y = smalti_grid_tile(&z, b)),
			      .rows = rows_of(f, b), .in = patch->in, .out = patch->out,
			      .first = f->partition->first[b], .columns = conditions->columns,
			      .input_scale = input_scale);
	return z;
}

static struct smalti_grid copy_of(const struct forward *f, const struct smalti_grid *x)
{
	struct smalti_grid y = new_tokens(f, SMALTI_F32);
	for (int64_t b = 0; b < f->partition->bands; b++)
		smalti_insert(copy, f->task_group,
			      (.x = smalti_grid_tile(x, b), .y = smalti_grid_tile(&y, b)),
			      .bytes = rows_of(f, b) * f->dit->config.width * (int64_t)sizeof(float));
	return y;
}

static struct smalti_tile *modulation_at(const struct forward *f, struct smalti_weight *table, int64_t rows,
					 struct smalti_tile *embedding, int64_t period, int64_t step)
{
	const int64_t width = f->dit->config.width;
	struct smalti_tile *y = smalti_tile_new(f->task_group, rows, width * (int64_t)sizeof(float));
	smalti_insert(modulation, f->task_group,
		      (.table = smalti_weight_tile(table), .embedding = embedding, .y = y), .rows = rows,
		      .dim = width, .period = period, .step = step);
	return y;
}

/* LN-modulated x through the output projection (3.7). */
static struct smalti_grid project_out(const struct forward *f, struct smalti_tile *final,
				      const struct smalti_grid *x)
{
	const struct smalti_linear *out = &f->dit->out;
	const double epsilon = 1e-6; /* fixed, whatever norm_eps says */
	struct smalti_grid v = no_tokens(f);
	for (int64_t b = 0; v.tile && b < f->partition->bands; b++) {
		begin_half_block(f, "final layer");
		struct smalti_tile *h = modulate(f, b, smalti_grid_tile(x, b), final, 0, 1, epsilon);
		v.tile[b] = smalti_linear(f->task_group, out, rows_of(f, b), f->dit->compute, h,
					  SMALTI_EPILOGUE_NONE, SMALTI_F32);
		smalti_tile_release(h);
		smalti_fuse_end(f->task_group);
	}
	return v;
}

/* One branch through a block; the first one's self-attention is behind it. */
static void run_block(const struct forward *f, int64_t block, struct smalti_cross_cache *cache,
		      const struct smalti_grid *z)
{
	const bool single = f->partition->bands == 1; /* nothing waits for other bands */
	struct projections p = {{NULL, NULL}, {NULL, NULL}};
	if (single)
		smalti_fuse_begin(f->task_group, SMALTI_GRAIN_BLOCK, f->small, "block");
	if (block > 0)
		p = project(f, block, z);
	for (int64_t b = 0; b < f->partition->bands && !smalti_task_group_broken(f->task_group); b++) {
		struct smalti_tile *band = smalti_grid_tile(z, b);
		begin_half_block(f, "attention and MLP");
		if (block > 0)
			self_attention(f, block, b, &p, band);
		cross_attention(f, block, b, cache, band);
		mlp(f, block, b, band);
		smalti_fuse_end(f->task_group);
	}
	release_projections(&p);
	if (single)
		smalti_fuse_end(f->task_group);
}

/* The branches of the prompts differ only from the first cross-attention on: before it they are one. */
static void run_blocks(const struct forward *f, struct smalti_grid *z,
		       struct smalti_cross_cache *const *caches, int count)
{
	smalti_task_group_at(f->task_group, 0, -1);
	struct projections first = project(f, 0, &z[0]);
	for (int64_t b = 0; b < f->partition->bands && !smalti_task_group_broken(f->task_group); b++) {
		begin_half_block(f, "attention");
		self_attention(f, 0, b, &first, smalti_grid_tile(&z[0], b));
		smalti_fuse_end(f->task_group);
	}
	release_projections(&first);
	for (int k = 1; k < count; k++)
		z[k] = copy_of(f, &z[0]);
	for (int64_t block = 0; block < f->dit->config.layers; block++) {
		smalti_task_group_at(f->task_group, block, -1);
		for (int k = 0; k < count && !smalti_task_group_broken(f->task_group); k++)
			run_block(f, block, caches[k], &z[k]);
	}
	smalti_task_group_at(f->task_group, -1, -1);
}

static void forward(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
		    const struct smalti_conditions *conditions, int64_t step, float input_scale,
		    const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
		    struct smalti_grid *v)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	struct forward f = {.dit = dit, .task_group = task_group, .partition = x->partition};
	struct smalti_grid z[SMALTI_DENOISER_MAX_BRANCHES] = {{NULL, NULL}};
	for (int k = 0; k < count; k++)
		v[k] = (struct smalti_grid){x->partition, NULL};
	if (smalti_task_group_broken(task_group))
		return;
	f.small = is_small(dit, x->partition);
	f.behind = (conditions->steps - 1 - step) * (dit->config.layers * PHASES + 1);
	begin_phase(&f, 0, KEYS);
	f.modulation = modulation_at(&f, dit->block_tables, dit->config.layers * BLOCK_ROWS,
				     conditions->adaln, BLOCK_ROWS, step);
	struct smalti_tile *final = modulation_at(&f, dit->final_table, 2, conditions->timestep, 1, step);
	z[0] = embed_patches(&f, conditions, input_scale, x);
	run_blocks(&f, z, caches, count);
	smalti_task_group_path(task_group, f.behind);
	for (int k = 0; k < count; k++) {
		v[k] = project_out(&f, final, &z[k]);
		smalti_grid_release(&z[k]);
	}
	smalti_tile_release(f.modulation);
	smalti_tile_release(final);
}

static void free_dit(struct smalti_denoiser *denoiser)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	if (!dit)
		return;
	smalti_weights_free(denoiser->weights);
	free(dit->blocks);
	free(dit);
}

static const struct smalti_denoiser_functions functions = {
    .free = free_dit,
    .cross_cache_bytes = cross_cache_bytes,
    .working_bytes = working_bytes,
    .flops = flops_of,
    .cross_cache = make_cross_cache,
    .release_cross_cache = release_cross_cache,
    .conditions = smalti_dit_conditions,
    .release_conditions = smalti_dit_release_conditions,
    .forward = forward,
};

struct smalti_denoiser *smalti_dit_new(struct smalti_task_group *task_group,
				       const struct smalti_transformer_config *config,
				       const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				       struct smalti_error *error)
{
	struct smalti_dit *dit = smalti_calloc(1, sizeof(*dit), error);
	if (!dit)
		return NULL;
	dit->denoiser = (struct smalti_denoiser){
	    .functions = &functions,
	    .in_channels = config->in_channels,
	    .out_channels = config->out_channels,
	    .patch_size = config->patch_size,
	    .sample_size = config->sample_size,
	    .text_width = config->caption_channels ? config->caption_channels : config->width};
	dit->config = *config;
	dit->compute = compute;
	dit->blocks = smalti_calloc(config->layers, sizeof(*dit->blocks), error);
	dit->denoiser.weights = smalti_weights_new(task_group, checkpoint, compute, error);
	if (dit->blocks && dit->denoiser.weights && smalti_dit_load(dit, checkpoint, error) == 0)
		return &dit->denoiser;
	free_dit(&dit->denoiser);
	return NULL;
}
