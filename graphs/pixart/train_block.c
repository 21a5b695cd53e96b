/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"
#include "graphs/pixart/block.h"
#include "graphs/pixart/train_pass.h"
#include "kernels/attention.h"

struct smalti_train_rows smalti_train_normalized(const struct smalti_dit_pass *pass, int64_t rows,
						 struct smalti_tile *x, struct smalti_tile *modulation,
						 int64_t shift_row, double epsilon)
{
	const int64_t width = pass->train->config.width;
	const enum smalti_dtype dtype = pass->train->compute;
	struct smalti_tile *y = smalti_tile_new(pass->task_group, rows, width * smalti_dtype_bytes(dtype));
	smalti_insert(ln_modulate, pass->task_group, (.x = x, .modulation = modulation, .y = y), .rows = rows,
		      .dim = width, .shift_row = shift_row, .scale_row = shift_row + 1,
		      .epsilon = (float)epsilon, .dtype = dtype);
	return (struct smalti_train_rows){y, rows, dtype};
}

/* Inserts sum = x + gate ⊙ y; with gate_row −1 sum = x + y. */
static void add_gated(const struct smalti_dit_pass *pass, const struct smalti_block_kept *kept, int64_t band,
		      struct smalti_tile *x, struct smalti_tile *y, int64_t gate_row, struct smalti_tile *sum)
{
	smalti_insert(gated_sum, pass->task_group,
		      (.x = x, .z = y,
		       .modulation = gate_row < 0 ? NULL : smalti_train_kept_at(pass, kept)->modulation,
		       .y = sum),
		      .rows = smalti_train_rows(pass, band), .dim = pass->train->config.width,
		      .gate_row = gate_row < 0 ? 0 : gate_row);
}

/* The keys and values that a band's queries attend to, in blocks in their order. */
struct keys {
	int64_t blocks, stride; /* stride: from a block's tiles to the next one's */
	struct smalti_tile *const *k, *const *v;
	const struct smalti_partition *rows; /* NULL: one block of `count` */
	int64_t count, first; /* first: the block that is read first; the others follow in a ring */
};

static void attend(const struct smalti_dit_pass *pass, const struct smalti_train_attention *attention,
		   int64_t queries, struct smalti_tile *q, const struct keys *keys, struct smalti_tile **y,
		   struct smalti_tile **lse)
{
	const int64_t dim = pass->train->config.head_dim, heads = attention->q.out / dim;
	const int64_t floats = smalti_attention_state(queries, heads, dim);
	struct smalti_tile *state = keys->blocks > 1 ? smalti_train_tile(pass, 1, floats) : NULL;
	*y = smalti_tile_new(pass->task_group, queries, heads * dim * smalti_dtype_bytes(attention->dtype));
	*lse = smalti_train_tile(pass, heads, queries);
	for (int64_t n = 0; n < keys->blocks; n++) {
		const bool last = n == keys->blocks - 1;
		const int64_t i = (keys->first + n) % keys->blocks;
		smalti_insert(attention, pass->task_group,
			      (.q = q, .kv = {keys->k[i * keys->stride]}, .state = state,
			       .y = last ? *y : NULL, .lse = last ? *lse : NULL),
			      .queries = queries,
			      .keys = {keys->rows ? smalti_partition_rows(keys->rows, i) : keys->count},
			      .heads = heads, .head_dim = dim, .dtype = attention->dtype,
			      .scale = smalti_attention_scale(dim), .first = n == 0, .last = last);
	}
	smalti_tile_release(state);
}

/* A block's forward under way. */
struct forward {
	struct smalti_dit_pass *pass;
	const struct smalti_block_kept *kept;
	int64_t block;
};

static struct smalti_tile **kept_tile(const struct forward *f, enum smalti_band_kept which, int64_t band,
				      int shard)
{
	return smalti_train_kept(f->pass, f->kept, which, band, shard);
}

static struct smalti_train_rows normalize(const struct forward *f, int64_t band, struct smalti_tile *z,
					  int64_t shift_row)
{
	return smalti_train_normalized(f->pass, smalti_train_rows(f->pass, band), z,
				       smalti_train_kept_at(f->pass, f->kept)->modulation, shift_row,
				       f->pass->train->config.norm_eps);
}

/* Makes the queries, keys and values of a band's self-attention. */
static void project(const struct forward *f, int64_t band, struct smalti_tile *z)
{
	const struct smalti_train_rows u = normalize(f, band, z, SHIFT_ATTENTION);
	for (int shard = 0; shard < f->pass->shards; shard++) {
		const struct smalti_train_attention *w = &smalti_train_shard(f->pass, f->block, shard)->self;
		if (w->q.out == 0)
			continue;
		smalti_train_go_to_shard(f->pass, band, shard);
		*kept_tile(f, SMALTI_KEPT_Q, band, shard) = smalti_train_linear(f->pass, &w->q, u, w->dtype);
		*kept_tile(f, SMALTI_KEPT_K, band, shard) = smalti_train_linear(f->pass, &w->k, u, w->dtype);
		*kept_tile(f, SMALTI_KEPT_V, band, shard) = smalti_train_linear(f->pass, &w->v, u, w->dtype);
	}
	smalti_tile_release(u.tile);
}

/* Returns a new tile x + y, with y's gate, at the band's home. */
static struct smalti_tile *add_at_home(const struct forward *f, int64_t band, struct smalti_tile *x,
				       struct smalti_tile *y, int64_t gate_row)
{
	smalti_train_go_home(f->pass, band);
	struct smalti_tile *sum =
	    smalti_train_tile(f->pass, smalti_train_rows(f->pass, band), f->pass->train->config.width);
	add_gated(f->pass, f->kept, band, x, y, gate_row, sum);
	return sum;
}

static void self_attention(const struct forward *f, int64_t band, struct smalti_tile *z)
{
	struct smalti_dit_pass *pass = f->pass;
	const int64_t rows = smalti_train_rows(pass, band);
	struct smalti_tile *a = NULL;
	for (int i = 0; i < pass->shards; i++) {
		const int shard = smalti_train_turn(pass, band, i);
		const struct smalti_train_attention *w = &smalti_train_shard(pass, f->block, shard)->self;
		if (w->q.out == 0)
			continue;
		smalti_train_go_to_shard(pass, band, shard);
		const struct keys keys = {.blocks = smalti_train_bands(pass)->bands,
					  .stride = pass->shards,
					  .k = kept_tile(f, SMALTI_KEPT_K, 0, shard),
					  .v = kept_tile(f, SMALTI_KEPT_V, 0, shard),
					  .rows = smalti_train_bands(pass),
					  .first = smalti_train_first_keys(pass)};
		struct smalti_tile **y = kept_tile(f, SMALTI_KEPT_ATTENDED, band, shard);
		attend(pass, w, rows, *kept_tile(f, SMALTI_KEPT_Q, band, shard), &keys, y,
		       kept_tile(f, SMALTI_KEPT_LSE, band, shard));
		a = smalti_train_linear_sum(pass, &w->out, (struct smalti_train_rows){*y, rows, w->dtype}, a);
	}
	*kept_tile(f, SMALTI_KEPT_ATTENTION, band, 0) = a;
	*kept_tile(f, SMALTI_KEPT_AFTER_ATTENTION, band, 0) = add_at_home(f, band, z, a, GATE_ATTENTION);
}

static void cross_attention(const struct forward *f, int64_t band)
{
	struct smalti_dit_pass *pass = f->pass;
	const int64_t rows = smalti_train_rows(pass, band);
	struct smalti_tile *z = *kept_tile(f, SMALTI_KEPT_AFTER_ATTENTION, band, 0), *a = NULL;
	for (int i = 0; i < pass->shards; i++) {
		const int shard = smalti_train_turn(pass, band, i);
		const struct smalti_train_attention *w = &smalti_train_shard(pass, f->block, shard)->cross;
		if (w->q.out == 0)
			continue;
		smalti_train_go_to_shard(pass, band, shard);
		const struct smalti_part_kept *here = smalti_train_kept_at(pass, f->kept);
		const struct keys keys = {
		    .blocks = 1, .k = &here->cross_k, .v = &here->cross_v, .count = pass->sample.text_tokens};
		struct smalti_tile **q = kept_tile(f, SMALTI_KEPT_CROSS_Q, band, shard);
		struct smalti_tile **y = kept_tile(f, SMALTI_KEPT_CROSS_ATTENDED, band, shard);
		*q = smalti_train_linear(pass, &w->q, (struct smalti_train_rows){z, rows, SMALTI_F32},
					 w->dtype);
		attend(pass, w, rows, *q, &keys, y, kept_tile(f, SMALTI_KEPT_CROSS_LSE, band, shard));
		a = smalti_train_linear_sum(pass, &w->out, (struct smalti_train_rows){*y, rows, w->dtype}, a);
	}
	*kept_tile(f, SMALTI_KEPT_AFTER_CROSS, band, 0) = add_at_home(f, band, z, a, -1);
	smalti_tile_release(a);
}

static void mlp(const struct forward *f, int64_t band, struct smalti_tile **next)
{
	struct smalti_dit_pass *pass = f->pass;
	struct smalti_tile *z = *kept_tile(f, SMALTI_KEPT_AFTER_CROSS, band, 0), *y = NULL;
	const struct smalti_train_rows u = normalize(f, band, z, SHIFT_MLP);
	for (int i = 0; i < pass->shards; i++) {
		const int shard = smalti_train_turn(pass, band, i);
		const struct smalti_train_mlp *w = &smalti_train_shard(pass, f->block, shard)->mlp;
		if (w->first.out == 0)
			continue;
		smalti_train_go_to_shard(pass, band, shard);
		y = smalti_train_mlp(pass, w, u, kept_tile(f, SMALTI_KEPT_HIDDEN, band, shard), y);
	}
	smalti_tile_release(u.tile);
	*kept_tile(f, SMALTI_KEPT_MLP, band, 0) = y;
	if (next)
		*next = add_at_home(f, band, z, y, GATE_MLP);
}

/* Allocates the lists of tiles. */
static bool make_room(const struct smalti_dit_pass *pass, struct smalti_block_kept *kept)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t shards = smalti_train_bands(pass)->bands * pass->shards;
	kept->tiles = smalti_calloc(shards, SMALTI_KEPT_TILES * sizeof(struct smalti_tile *), &error);
	kept->part = smalti_calloc(pass->parts, sizeof(*kept->part), &error);
	if (kept->tiles && kept->part)
		return true;
	smalti_task_group_break(pass->task_group, &error);
	return false;
}

/* Computes at a part what all its bands need. */
static void prepare_part(const struct forward *f, int part)
{
	struct smalti_dit_pass *pass = f->pass;
	const struct smalti_train_block *w = smalti_train_shard(pass, f->block, part % pass->shards);
	const struct smalti_train_rows caption = {pass->c, pass->sample.text_tokens, SMALTI_F32};
	struct smalti_part_kept *kept = &f->kept->part[part];
	smalti_train_go(pass, part);
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, caption.rows, "caption's keys");
	kept->modulation = smalti_train_modulation(pass, w->table, BLOCK_ROWS, pass->g, BLOCK_ROWS);
	if (w->heads > 0) {
		kept->cross_k = smalti_train_linear(pass, &w->cross.k, caption, w->cross.dtype);
		kept->cross_v = smalti_train_linear(pass, &w->cross.v, caption, w->cross.dtype);
	}
	smalti_fuse_end(pass->task_group);
}

static void begin_task(const struct forward *f, int64_t band, const char *name)
{
	smalti_task_group_at(f->pass->task_group, f->block, band);
	smalti_train_go_home(f->pass, band);
	smalti_train_begin_task(f->pass, SMALTI_GRAIN_HALF_BLOCK, smalti_train_rows(f->pass, band), name);
}

void smalti_train_block(struct smalti_dit_pass *pass, int64_t block, const struct smalti_grid *next)
{
	struct smalti_block_kept *kept = &pass->kept[block];
	const struct forward f = {pass, kept, block};
	const struct smalti_grid *z = &pass->z[block];
	const int64_t bands = smalti_train_bands(pass)->bands;
	if (!make_room(pass, kept))
		return;
	if (bands == 1)
		smalti_train_begin_task(pass, SMALTI_GRAIN_BLOCK, smalti_train_rows(pass, 0), "block");
	for (int part = 0; part < pass->parts; part++)
		prepare_part(&f, part);
	for (int64_t b = 0; b < bands; b++) {
		begin_task(&f, b, "norm and projections");
		project(&f, b, smalti_grid_tile(z, b));
		smalti_fuse_end(pass->task_group);
	}
	for (int64_t b = 0; b < bands; b++) {
		begin_task(&f, b, "attention and MLP");
		self_attention(&f, b, smalti_grid_tile(z, b));
		cross_attention(&f, b);
		mlp(&f, b, next ? &next->tile[b] : NULL);
		smalti_fuse_end(pass->task_group);
	}
	if (bands == 1)
		smalti_fuse_end(pass->task_group);
	smalti_task_group_at(pass->task_group, -1, -1);
}

void smalti_train_block_release(const struct smalti_dit_pass *pass, int64_t block)
{
	struct smalti_block_kept *kept = &pass->kept[block];
	const int64_t tiles = SMALTI_KEPT_TILES * smalti_train_bands(pass)->bands * pass->shards;
	for (int64_t i = 0; kept->tiles && i < tiles; i++)
		smalti_tile_release(kept->tiles[i]);
	free(kept->tiles);
	for (int part = 0; kept->part && part < pass->parts; part++) {
		smalti_tile_release(kept->part[part].modulation);
		smalti_tile_release(kept->part[part].cross_k);
		smalti_tile_release(kept->part[part].cross_v);
	}
	free(kept->part);
	*kept = (struct smalti_block_kept){0};
}
