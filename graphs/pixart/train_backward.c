/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"
#include "graphs/pixart/block.h"
#include "graphs/pixart/train_pass.h"

/* The tiles to which the bands of a part add, one after the other. */
struct part_gradients {
	struct smalti_tile *table;             /* [6, width] */
	struct smalti_tile *cross_k, *cross_v; /* of the caption */
	struct smalti_grid q, k, v;            /* of the shard's heads */
};

/* A block's backward under way. */
struct backward {
	struct smalti_dit_pass *pass;
	const struct smalti_block_kept *kept;
	const struct smalti_grid *z, *gz;
	struct part_gradients *part;
	int64_t block;
};

static const struct smalti_train_block *weights_of(const struct backward *b, int shard)
{
	return smalti_train_shard(b->pass, b->block, shard);
}

static struct smalti_tile *kept_tile(const struct backward *b, enum smalti_band_kept which, int64_t band,
				     int shard)
{
	return *smalti_train_kept(b->pass, b->kept, which, band, shard);
}

/* Returns the gradients where tasks run. */
static struct part_gradients *here(const struct backward *b)
{
	return &b->part[b->pass->here - b->pass->part];
}

static struct smalti_tile *modulation_of(const struct backward *b)
{
	return smalti_train_kept_at(b->pass, b->kept)->modulation;
}

static void begin_task(const struct backward *b, int64_t band, const char *name)
{
	smalti_train_go_home(b->pass, band);
	smalti_train_begin_task(b->pass, SMALTI_GRAIN_HALF_BLOCK, smalti_train_rows(b->pass, band), name);
}

static struct smalti_train_rows normalize(const struct backward *b, int64_t band, struct smalti_tile *z,
					  int64_t shift_row)
{
	return smalti_train_normalized(b->pass, smalti_train_rows(b->pass, band), z, modulation_of(b),
				       shift_row, b->pass->train->config.norm_eps);
}

/* Returns a new tile: the gradient of what was gated and added to the stream. */
static struct smalti_tile *gate_backward(const struct backward *b, int64_t band, struct smalti_tile *added,
					 int64_t gate_row)
{
	const int64_t rows = smalti_train_rows(b->pass, band), width = b->pass->train->config.width;
	struct smalti_tile *g = smalti_train_tile(b->pass, rows, width);
	smalti_insert(gate_backward, b->pass->task_group,
		      (.gy = smalti_grid_tile(b->gz, band), .z = added, .modulation = modulation_of(b),
		       .gz = g, .gmodulation = here(b)->table),
		      .rows = rows, .dim = width, .gate_row = gate_row);
	return g;
}

/* Adds the gradient through LN and its modulation to gz. */
static void norm_backward(const struct backward *b, int64_t band, struct smalti_tile *z,
			  struct smalti_tile *gu, int64_t shift_row)
{
	smalti_insert(ln_modulate_backward, b->pass->task_group,
		      (.x = z, .modulation = modulation_of(b), .gy = gu, .gx = smalti_grid_tile(b->gz, band),
		       .gmodulation = here(b)->table),
		      .rows = smalti_train_rows(b->pass, band), .dim = b->pass->train->config.width,
		      .shift_row = shift_row, .scale_row = shift_row + 1,
		      .epsilon = (float)b->pass->train->config.norm_eps, .add = true);
}

static void mlp_backward(const struct backward *b, int64_t band)
{
	struct smalti_dit_pass *pass = b->pass;
	struct smalti_tile *z = kept_tile(b, SMALTI_KEPT_AFTER_CROSS, band, 0);
	struct smalti_tile *gy = gate_backward(b, band, kept_tile(b, SMALTI_KEPT_MLP, band, 0), GATE_MLP);
	struct smalti_tile *gu =
	    smalti_train_tile(pass, smalti_train_rows(pass, band), pass->train->config.width);
	const struct smalti_train_rows u = normalize(b, band, z, SHIFT_MLP);
	bool add_input = false;
	for (int i = 0; i < pass->shards; i++) {
		const int shard = smalti_train_turn(pass, band, i);
		const struct smalti_train_mlp *w = &weights_of(b, shard)->mlp;
		if (w->first.out == 0)
			continue;
		smalti_train_go_to_shard(pass, band, shard);
		smalti_train_mlp_backward(pass, w, u, kept_tile(b, SMALTI_KEPT_HIDDEN, band, shard), gy,
					  smalti_train_shard_adds(pass, band), add_input, gu);
		add_input = true;
	}
	smalti_train_go_home(pass, band);
	norm_backward(b, band, z, gu, SHIFT_MLP);
	smalti_tile_release(u.tile);
	smalti_tile_release(gy);
	smalti_tile_release(gu);
}

/* Inserts the output projection's backward. Returns a new tile, the gradient of the heads' results. */
static struct smalti_tile *out_backward(const struct backward *b,
					const struct smalti_train_attention *attention, int64_t band,
					struct smalti_tile *gy, struct smalti_tile *attended)
{
	const int64_t rows = smalti_train_rows(b->pass, band);
	struct smalti_tile *g = smalti_train_tile(b->pass, rows, attention->out.in);
	smalti_train_linear_weight(b->pass, &attention->out, gy,
				   (struct smalti_train_rows){attended, rows, attention->dtype},
				   smalti_train_shard_adds(b->pass, band));
	smalti_train_linear_input(b->pass, &attention->out, gy, rows, false, g);
	return g;
}

/* Inserts attention's backward for a band's queries and one block of keys. */
static void attend_backward(const struct backward *b, const struct smalti_train_attention *attention,
			    const struct attention_backward_buffers *buffers, int64_t queries, int64_t keys,
			    bool add_queries, bool add_keys)
{
	const struct smalti_transformer_config *c = &b->pass->train->config;
	const struct attention_backward_arguments a = {.queries = queries,
						       .keys = keys,
						       .heads = attention->q.out / c->head_dim,
						       .head_dim = c->head_dim,
						       .dtype = attention->dtype,
						       .scale = smalti_attention_scale(c->head_dim),
						       .add_queries = add_queries,
						       .add_keys = add_keys};
	smalti_insert_attention_backward(b->pass->task_group, buffers, &a);
}

/* Returns a new tile, the gradient of a shard's queries of the caption. */
static struct smalti_tile *cross_shard_backward(const struct backward *b, int64_t band, int shard)
{
	struct smalti_dit_pass *pass = b->pass;
	const struct smalti_train_attention *cross = &weights_of(b, shard)->cross;
	const int64_t rows = smalti_train_rows(pass, band);
	smalti_train_go_to_shard(pass, band, shard);
	const struct smalti_part_kept *kept = smalti_train_kept_at(pass, b->kept);
	struct smalti_tile *y = kept_tile(b, SMALTI_KEPT_CROSS_ATTENDED, band, shard);
	struct smalti_tile *gy = out_backward(b, cross, band, smalti_grid_tile(b->gz, band), y);
	struct smalti_tile *gq = smalti_train_tile(pass, rows, cross->q.out);
	const struct attention_backward_buffers buffers = {
	    .q = kept_tile(b, SMALTI_KEPT_CROSS_Q, band, shard),
	    .kv = kept->cross_k,
	    .y = y,
	    .lse = kept_tile(b, SMALTI_KEPT_CROSS_LSE, band, shard),
	    .gy = gy,
	    .gq = gq,
	    .gkv = here(b)->cross_k};
	attend_backward(b, cross, &buffers, rows, pass->sample.text_tokens, false,
			smalti_train_shard_adds(pass, band));
	const struct smalti_train_rows x = {kept_tile(b, SMALTI_KEPT_AFTER_ATTENTION, band, 0), rows,
					    SMALTI_F32};
	smalti_train_linear_weight(pass, &cross->q, gq, x, smalti_train_shard_adds(pass, band));
	smalti_tile_release(gy);
	return gq;
}

static void cross_backward(const struct backward *b, int64_t band)
{
	struct smalti_dit_pass *pass = b->pass;
	struct smalti_tile *gq[SMALTI_MOST_SHARDS] = {NULL};
	for (int i = 0; i < pass->shards; i++) { /* all shards read gz before the first one adds to it */
		const int shard = smalti_train_turn(pass, band, i);
		if (weights_of(b, shard)->heads > 0)
			gq[shard] = cross_shard_backward(b, band, shard);
	}
	for (int i = 0; i < pass->shards; i++) {
		const int shard = smalti_train_turn(pass, band, i);
		if (!gq[shard])
			continue;
		smalti_train_go_to_shard(pass, band, shard);
		smalti_train_linear_input(pass, &weights_of(b, shard)->cross.q, gq[shard],
					  smalti_train_rows(pass, band), true, smalti_grid_tile(b->gz, band));
		smalti_tile_release(gq[shard]);
	}
}

/* Turns a part's gradients of keys and values into the caption's. `first`: no block has added to that yet. */
static void caption_backward(const struct backward *b, int part, bool first)
{
	struct smalti_dit_pass *pass = b->pass;
	const struct part_gradients *g = &b->part[part];
	const struct smalti_train_attention *cross = &weights_of(b, part % pass->shards)->cross;
	const struct smalti_train_rows c = {pass->c, pass->sample.text_tokens, SMALTI_F32};
	if (cross->q.out == 0)
		return;
	smalti_train_go(pass, part);
	struct smalti_tile *gc = pass->here->gc;
	smalti_train_begin_task(pass, SMALTI_GRAIN_HALF_BLOCK, c.rows, "keys' gradients");
	smalti_train_linear_weight(pass, &cross->k, g->cross_k, c, false);
	smalti_train_linear_weight(pass, &cross->v, g->cross_v, c, false);
	if (gc) {
		smalti_train_linear_input(pass, &cross->k, g->cross_k, c.rows, !first, gc);
		smalti_train_linear_input(pass, &cross->v, g->cross_v, c.rows, true, gc);
	}
	smalti_fuse_end(pass->task_group);
}

/* Inserts the backward of a band's queries of a shard against all keys, to whose gradients the part adds band
 * by band. */
static void self_shard_backward(const struct backward *b, int64_t band, int shard, struct smalti_tile *ga)
{
	struct smalti_dit_pass *pass = b->pass;
	const struct smalti_train_attention *self = &weights_of(b, shard)->self;
	const int64_t bands = smalti_train_bands(pass)->bands;
	struct smalti_tile *y = kept_tile(b, SMALTI_KEPT_ATTENDED, band, shard);
	smalti_train_go_to_shard(pass, band, shard);
	const struct part_gradients *g = here(b);
	const int64_t first = smalti_train_first_keys(pass);
	struct smalti_tile *gy = out_backward(b, self, band, ga, y);
	for (int64_t n = 0; n < bands; n++) {
		const int64_t i = (first + n) % bands;
		const struct attention_backward_buffers buffers = {
		    .q = kept_tile(b, SMALTI_KEPT_Q, band, shard),
		    .kv = kept_tile(b, SMALTI_KEPT_K, i, shard),
		    .y = y,
		    .lse = kept_tile(b, SMALTI_KEPT_LSE, band, shard),
		    .gy = gy,
		    .gq = smalti_grid_tile(&g->q, band),
		    .gkv = smalti_grid_tile(&g->k, i)};
		attend_backward(b, self, &buffers, smalti_train_rows(pass, band), smalti_train_rows(pass, i),
				n > 0, smalti_train_shard_adds(pass, band));
	}
	smalti_tile_release(gy);
}

static void self_backward(const struct backward *b, int64_t band)
{
	struct smalti_tile *ga =
	    gate_backward(b, band, kept_tile(b, SMALTI_KEPT_ATTENTION, band, 0), GATE_ATTENTION);
	for (int shard = 0; shard < b->pass->shards; shard++)
		if (weights_of(b, shard)->heads > 0)
			self_shard_backward(b, band, shard, ga);
	smalti_tile_release(ga);
}

/* Returns the sum of the ranks' gradients of a shard, at the band's rank: its own first, then the next
 * one's. */
static struct smalti_tile *come_home(const struct backward *b, int64_t band, int shard, bool values)
{
	const struct smalti_dit_pass *pass = b->pass;
	const int64_t count = smalti_train_rows(pass, band) * weights_of(b, shard)->self.k.out;
	const int home = pass->sample.tokens->band[band].rank;
	struct smalti_tile *sum = NULL;
	for (int n = 0; n < pass->ranks; n++) {
		const int rank = (home + n) % pass->ranks;
		const struct part_gradients *g = &b->part[rank * pass->shards + shard];
		struct smalti_tile *part = smalti_grid_tile(values ? &g->v : &g->k, band);
		if (sum)
			smalti_train_add(pass, count, part, true, sum);
		sum = sum ? sum : part;
	}
	return sum;
}

/* Adds the gradient of the input from a shard's gradients of queries, keys and values. */
static void project_shard_backward(const struct backward *b, int64_t band, int shard,
				   struct smalti_train_rows u, bool add, struct smalti_tile *gu)
{
	struct smalti_dit_pass *pass = b->pass;
	const struct smalti_train_attention *w = &weights_of(b, shard)->self;
	const struct smalti_train_linear *const layers[3] = {&w->q, &w->k, &w->v};
	smalti_train_go_to_shard(pass, band, shard);
	struct smalti_tile *const g[3] = {smalti_grid_tile(&here(b)->q, band),
					  come_home(b, band, shard, false), come_home(b, band, shard, true)};
	for (int i = 0; i < 3; i++) {
		smalti_train_linear_weight(pass, layers[i], g[i], u, smalti_train_shard_adds(pass, band));
		smalti_train_linear_input(pass, layers[i], g[i], u.rows, add || i > 0, gu);
	}
}

/* Turns the gradients of a band's queries, keys and values into the stream's. */
static void project_backward(const struct backward *b, int64_t band)
{
	struct smalti_dit_pass *pass = b->pass;
	struct smalti_tile *z = smalti_grid_tile(b->z, band);
	struct smalti_tile *gu =
	    smalti_train_tile(pass, smalti_train_rows(pass, band), pass->train->config.width);
	const struct smalti_train_rows u = normalize(b, band, z, SHIFT_ATTENTION);
	bool add = false;
	for (int i = 0; i < pass->shards; i++) {
		const int shard = smalti_train_turn(pass, band, i);
		if (weights_of(b, shard)->heads == 0)
			continue;
		project_shard_backward(b, band, shard, u, add, gu);
		add = true;
	}
	smalti_train_go_home(pass, band);
	norm_backward(b, band, z, gu, SHIFT_ATTENTION);
	smalti_tile_release(u.tile);
	smalti_tile_release(gu);
}

static void attention_backward(const struct backward *b)
{
	const struct smalti_partition *tokens = smalti_train_bands(b->pass);
	for (int64_t band = 0; band < tokens->bands; band++) {
		begin_task(b, band, "attention's gradients");
		self_backward(b, band);
		smalti_fuse_end(b->pass->task_group);
	}
	for (int64_t band = 0; band < tokens->bands; band++) {
		begin_task(b, band, "projections' gradients");
		project_backward(b, band);
		smalti_fuse_end(b->pass->task_group);
	}
}

static void begin_part(const struct backward *b, int part)
{
	struct smalti_dit_pass *pass = b->pass;
	const int64_t tokens = pass->sample.text_tokens;
	const int64_t width = weights_of(b, part % pass->shards)->self.q.out;
	struct part_gradients *g = &b->part[part];
	smalti_train_go(pass, part);
	g->table = smalti_train_cleared(pass, BLOCK_ROWS, pass->train->config.width);
	if (width == 0)
		return;
	g->cross_k = smalti_train_tile(pass, tokens, width);
	g->cross_v = smalti_train_tile(pass, tokens, width);
	g->q = smalti_train_grid(pass, width);
	g->k = smalti_train_grid(pass, width);
	g->v = smalti_train_grid(pass, width);
}

/* Adds the part's gradients of the block's table and of g. */
static void end_part(const struct backward *b, int part, bool first)
{
	struct smalti_dit_pass *pass = b->pass;
	struct part_gradients *g = &b->part[part];
	const int64_t count = BLOCK_ROWS * pass->train->config.width;
	smalti_train_go(pass, part);
	smalti_train_add(pass, count, g->table, pass->add, pass->here->gradients[weights_of(b, 0)->table]);
	smalti_train_add(pass, count, g->table, !first, pass->here->gg);
	smalti_tile_release(g->cross_k);
	smalti_tile_release(g->cross_v);
	smalti_tile_release(g->table);
	smalti_grid_release(&g->q);
	smalti_grid_release(&g->k);
	smalti_grid_release(&g->v);
}

void smalti_train_block_backward(struct smalti_dit_pass *pass, int64_t block, const struct smalti_grid *gz)
{
	const bool first = block == pass->train->config.layers - 1;
	const bool whole = smalti_train_bands(pass)->bands == 1;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct backward b = {.pass = pass,
				   .kept = &pass->kept[block],
				   .z = &pass->z[block],
				   .gz = gz,
				   .part = smalti_calloc(pass->parts, sizeof(*b.part), &error),
				   .block = block};
	if (!b.part) {
		smalti_task_group_break(pass->task_group, &error);
		return;
	}
	if (whole)
		smalti_train_begin_task(pass, SMALTI_GRAIN_BLOCK, smalti_train_rows(pass, 0),
					"block's gradients");
	for (int part = 0; part < pass->parts; part++)
		begin_part(&b, part);
	for (int64_t band = 0; band < smalti_train_bands(pass)->bands; band++) {
		smalti_task_group_at(pass->task_group, block, band);
		begin_task(&b, band, "MLP's and caption's gradients");
		mlp_backward(&b, band);
		cross_backward(&b, band);
		smalti_fuse_end(pass->task_group);
	}
	smalti_task_group_at(pass->task_group, block, -1);
	for (int part = 0; part < pass->parts; part++)
		caption_backward(&b, part, first);
	attention_backward(&b);
	for (int part = 0; part < pass->parts; part++)
		end_part(&b, part, first);
	free(b.part);
	if (whole)
		smalti_fuse_end(pass->task_group);
	smalti_task_group_at(pass->task_group, -1, -1);
}
