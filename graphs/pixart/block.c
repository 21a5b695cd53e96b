/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/block.h"
#include "graphs/linear.h"
#include "graphs/pixart/cross_cache.h"
#include "rt/task.h"

int64_t smalti_dit_rows(const struct smalti_dit_forward *f, int64_t band)
{
	return smalti_partition_rows(&f->tokens->partition, band);
}

/* Returns the place of a shard of a band. */
static int place_of(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
		    int shard)
{
	const int stage = smalti_strategy_stage(f->strategy, f->dit->config.layers, at.block);
	return smalti_strategy_place(f->strategy, at.branch, stage, shard, f->tokens->band[band].rank);
}

static void go_to(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band, int shard)
{
	smalti_task_group_place(f->task_group, place_of(f, at, band, shard));
}

void smalti_dit_go_home(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band)
{
	go_to(f, at, band, f->tokens->band[band].shard);
}

/* Returns how many shards have their own weights and compute with them; with 1, the band's home does. */
static int weight_shards(const struct smalti_dit_forward *f)
{
	return f->strategy->tensor ? f->shards->count : 1;
}

static void go_to_weights(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			  int shard)
{
	go_to(f, at, band, weight_shards(f) > 1 ? shard : f->tokens->band[band].shard);
}

static const struct smalti_dit_block *weights_of(const struct smalti_dit_forward *f, int64_t block, int shard)
{
	return weight_shards(f) > 1 ? &f->shards->shard[shard].blocks[block] : &f->dit->blocks[block];
}

/* Returns the shard number i that adds to a band. The band's own is the last, where the sum is needed. */
static int turn(const struct smalti_dit_forward *f, int64_t band, int i, int shards)
{
	return weight_shards(f) > 1 ? (f->tokens->band[band].shard + 1 + i) % shards : i;
}

static struct smalti_heads heads_of(const struct smalti_dit_forward *f, int64_t count)
{
	return (struct smalti_heads){count, f->dit->config.head_dim, f->dit->compute};
}

bool smalti_dit_together(const struct smalti_dit_forward *f)
{
	return f->pass < f->strategy->warmup || f->strategy->patches == 1;
}

/* Sets the priority of what follows. A patch goes through all layers of a stage before the next one; its own
 * tasks run as they are ready. Keys that other places wait for, by the strategy, are made as early as
 * possible. */
void smalti_dit_begin_phase(const struct smalti_dit_forward *f, int64_t band, int64_t block,
			    enum smalti_dit_phase phase)
{
	enum { AHEAD = 2 * PHASES }; /* earlier blocks, which the other branch is in */
	const int64_t ahead = phase == KEYS && f->strategy->count > 1 ? AHEAD : 0;
	const int64_t path = smalti_dit_together(f)
				 ? (f->dit->config.layers - 1 - block) * PHASES + (int64_t)phase + 1 + ahead
				 : f->strategy->patches - f->tokens->band[band].patch;
	smalti_task_group_path(f->task_group, f->behind + path);
}

/* Returns the flops of so many tokens in a block. */
static double block_flops(const struct smalti_dit_forward *f, int64_t tokens)
{
	const struct smalti_partition *partition = &f->tokens->partition;
	const double width = (double)f->dit->config.width, all = (double)partition->first[partition->bands];
	return (28 * width + 4 * all) * width * (double)tokens;
}

void smalti_dit_begin_task(const struct smalti_dit_forward *f, int64_t band, enum smalti_grain grain,
			   const char *name)
{
	const struct smalti_partition *partition = &f->tokens->partition;
	const struct smalti_fusion fusion = {name, grain,
					     block_flops(f, smalti_dit_rows(f, band)) / f->shards->count,
					     partition->owner ? partition->owner[band] : SMALTI_ANYWHERE};
	smalti_fuse_begin(f->task_group, &fusion);
}

void smalti_dit_begin_pass(const struct smalti_dit_forward *f, int branches)
{
	const struct smalti_partition *partition = &f->tokens->partition;
	const struct smalti_fusion fusion = {"pass", SMALTI_GRAIN_PASS,
					     block_flops(f, partition->first[partition->bands]) *
						 (double)f->dit->config.layers * branches,
					     SMALTI_ANYWHERE};
	smalti_fuse_begin(f->task_group, &fusion);
}

void smalti_dit_end_task(const struct smalti_dit_forward *f)
{
	smalti_fuse_end(f->task_group);
}

struct smalti_tile *smalti_dit_modulate(const struct smalti_dit_forward *f, int64_t band,
					struct smalti_tile *x, struct smalti_tile *modulation,
					int64_t shift_row, int64_t scale_row, double epsilon)
{
	const int64_t width = f->dit->config.width, rows = smalti_dit_rows(f, band);
	struct smalti_tile *h =
	    smalti_tile_new(f->task_group, rows, width * smalti_dtype_bytes(f->dit->compute));
	smalti_insert(ln_modulate, f->task_group, (.x = x, .modulation = modulation, .y = h), .rows = rows,
		      .dim = width, .shift_row = shift_row, .scale_row = scale_row, .epsilon = (float)epsilon,
		      .dtype = f->dit->compute);
	smalti_tile_moves_as(h, SMALTI_MOVE_SUMS);
	return h;
}

/* Self-attention */

bool smalti_dit_projections_new(const struct smalti_dit_forward *f, struct smalti_dit_projections *p)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t count = f->tokens->partition.bands * f->shards->count;
	p->q = smalti_calloc(count, sizeof(struct smalti_tile *), &error);
	p->kv = smalti_calloc(count, sizeof(struct smalti_tile *), &error);
	if (p->q && p->kv)
		return true;
	free(p->q);
	free(p->kv);
	smalti_task_group_break(f->task_group, &error);
	return false;
}

void smalti_dit_project(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			struct smalti_tile *x, struct smalti_dit_projections *p)
{
	const enum smalti_dtype dtype = f->dit->compute;
	const int64_t first_row = at.block * BLOCK_ROWS, rows = smalti_dit_rows(f, band);
	smalti_tile_moves_as(x, SMALTI_MOVE_STREAM); /* from the stage before */
	smalti_dit_begin_phase(f, band, at.block, KEYS);
	smalti_dit_go_home(f, at, band);
	smalti_dit_begin_task(f, band, SMALTI_GRAIN_HALF_BLOCK, "norm and projections");
	struct smalti_tile *h = smalti_dit_modulate(f, band, x, f->modulation, first_row + SHIFT_ATTENTION,
						    first_row + SCALE_ATTENTION, f->dit->config.norm_eps);
	for (int shard = 0; shard < f->shards->count; shard++) {
		const struct smalti_dit_shard *s = &f->shards->shard[shard];
		const int64_t i = band * f->shards->count + shard;
		if (s->heads == 0)
			continue;
		go_to_weights(f, at, band, shard);
		const struct smalti_dit_attention *w = &s->blocks[at.block].self;
		/* keys and values first: others wait for them */
		p->kv[i] = smalti_linear(f->task_group, &w->kv, rows, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		p->q[i] = smalti_linear(f->task_group, &w->q, rows, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		smalti_tile_moves_as(p->q[i], SMALTI_MOVE_HEADS);
		smalti_tile_moves_as(p->kv[i], SMALTI_MOVE_KEYS);
	}
	smalti_tile_release(h);
	smalti_dit_end_task(f);
	smalti_tile_moves_as(x, SMALTI_MOVE_SUMS);
}

static bool same_rank(const struct smalti_dit_forward *f, int64_t band, int64_t other)
{
	return f->tokens->band[band].rank == f->tokens->band[other].rank;
}

static bool is_warm(const struct smalti_dit_forward *f)
{
	return f->pass >= f->strategy->warmup;
}

/* Returns the keys and values of a branch's block from the previous pass, or from earlier patches of this
 * one. */
static struct smalti_tile **kept_of(const struct smalti_dit_forward *f, struct smalti_dit_position at)
{
	const int64_t count = f->tokens->partition.bands * f->shards->count;
	return f->conditions->kept
		   ? f->conditions->kept + (at.branch * f->dit->config.layers + at.block) * count
		   : NULL;
}

/* Returns the keys of band `other` that `band` reads: this pass's, if they are made and the strategy does not
 * ask for older ones. */
static struct smalti_tile *keys_for(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				    int64_t band, int64_t other, int shard,
				    const struct smalti_dit_projections *p)
{
	struct smalti_tile **kept = kept_of(f, at);
	const int64_t i = other * f->shards->count + shard;
	const bool older =
	    is_warm(f) && f->strategy->exchange == SMALTI_EXCHANGE_DISPLACED && !same_rank(f, band, other);
	return kept && (older || !p->kv[i]) ? kept[i] : p->kv[i];
}

/* Returns the band where a ring begins: the first one of the band's rank and patch. */
static int64_t ring_begin(const struct smalti_dit_forward *f, int64_t band)
{
	if (f->strategy->exchange != SMALTI_EXCHANGE_RING)
		return 0;
	while (band > 0 && same_rank(f, band, band - 1))
		band--;
	return band;
}

static const struct smalti_key_bands *gather(struct smalti_key_bands *keys,
					     const struct smalti_dit_forward *f,
					     struct smalti_dit_position at, int64_t band, int shard,
					     const struct smalti_dit_projections *p)
{
	const int64_t bands = f->tokens->partition.bands, begin = ring_begin(f, band);
	*keys = f->keys;
	keys->rank = f->strategy->exchange == SMALTI_EXCHANGE_RING ? f->ranks : NULL;
	keys->blocks = 0;
	for (int64_t i = 0; i < bands; i++) {
		const int64_t other = (begin + i) % bands;
		if (f->strategy->exchange >= SMALTI_EXCHANGE_MASKED && !same_rank(f, band, other))
			continue;
		keys->kv[keys->blocks] = keys_for(f, at, band, other, shard, p);
		keys->rows[keys->blocks] = smalti_dit_rows(f, other);
		f->ranks[keys->blocks++] = f->tokens->band[other].rank;
	}
	return keys;
}

void smalti_dit_self_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at,
			       int64_t band, const struct smalti_dit_projections *p, struct smalti_tile *x)
{
	const int64_t rows = smalti_dit_rows(f, band);
	const int shards = f->shards->count;
	smalti_dit_begin_phase(f, band, at.block, ATTENTION);
	for (int i = 0; i < shards; i++) {
		const int shard = turn(f, band, i, shards);
		const struct smalti_dit_shard *s = &f->shards->shard[shard];
		const struct smalti_heads heads = heads_of(f, s->heads);
		struct smalti_key_bands keys;
		if (s->heads == 0)
			continue;
		go_to(f, at, band, shard);
		struct smalti_tile *o =
		    smalti_attend(f->task_group, &heads, rows, p->q[band * shards + shard],
				  gather(&keys, f, at, band, shard, p));
		smalti_tile_moves_as(o, SMALTI_MOVE_HEADS);
		go_to_weights(f, at, band, shard);
		smalti_linear_gate_add(f->task_group, &s->blocks[at.block].self.out, rows, f->dit->compute, o,
				       f->modulation, at.block * BLOCK_ROWS + GATE_ATTENTION, x);
		smalti_tile_release(o);
	}
}

/* Tells whether a later task of this pass or of the next one reads this pass's keys and values. */
static bool is_kept(const struct smalti_dit_forward *f)
{
	const bool next = f->pass + 1 < f->conditions->steps && f->pass + 1 >= f->strategy->warmup;
	return f->conditions->kept && (next || (is_warm(f) && f->strategy->parts[SMALTI_AXIS_STAGE] > 1));
}

void smalti_dit_projections_release(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				    struct smalti_dit_projections *p)
{
	struct smalti_tile **kept = kept_of(f, at);
	for (int64_t i = 0; i < f->tokens->partition.bands * f->shards->count; i++) {
		if (p->kv[i] && is_kept(f)) {
			smalti_tile_release(kept[i]);
			kept[i] = p->kv[i];
			p->kv[i] = NULL;
		}
		smalti_tile_release(p->q[i]);
		smalti_tile_release(p->kv[i]);
	}
	free(p->q);
	free(p->kv);
}

/* Cross-attention */

static void attend_caption(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			   struct smalti_cross_cache *cache, struct smalti_tile **q, struct smalti_tile *x)
{
	const int64_t rows = smalti_dit_rows(f, band);
	const int shards = weight_shards(f);
	for (int i = 0; i < shards; i++) {
		const int shard = turn(f, band, i, shards);
		const int64_t count = shards > 1 ? f->shards->shard[shard].heads : f->dit->config.heads;
		const struct smalti_heads heads = heads_of(f, count);
		if (count == 0)
			continue;
		go_to_weights(f, at, band, shard);
		struct smalti_tile *kv = cache->block[at.block];
		if (shards > 1)
			kv = smalti_dit_caption_shard(f, at, cache, shard);
		const struct smalti_key_bands keys = {1, &kv, &cache->tokens, NULL};
		struct smalti_tile *o = smalti_attend(f->task_group, &heads, rows, q[i], &keys);
		smalti_linear_add(f->task_group, &weights_of(f, at.block, shard)->cross.out, rows,
				  f->dit->compute, o, x);
		smalti_tile_release(o);
	}
}

void smalti_dit_cross_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				int64_t band, struct smalti_cross_cache *cache, struct smalti_tile *x)
{
	const int64_t rows = smalti_dit_rows(f, band);
	const int shards = weight_shards(f);
	struct smalti_tile *q[SMALTI_MOST_SHARDS] = {NULL};
	smalti_dit_begin_phase(f, band, at.block, CROSS_ATTENTION);
	if (cache->tokens == 1) {
		smalti_dit_go_home(f, at, band);
		smalti_insert(add_row, f->task_group, (.row = cache->block[at.block], .y = x), .rows = rows,
			      .dim = f->dit->config.width);
		return;
	}
	for (int i = 0; i < shards; i++) { /* all shards read x before the first one adds to it */
		const int shard = turn(f, band, i, shards);
		if (shards > 1 && f->shards->shard[shard].heads == 0)
			continue;
		go_to_weights(f, at, band, shard);
		q[i] = smalti_linear(f->task_group, &weights_of(f, at.block, shard)->cross.q, rows,
				     SMALTI_F32, x, SMALTI_EPILOGUE_NONE, f->dit->compute);
	}
	attend_caption(f, at, band, cache, q, x);
	for (int i = 0; i < shards; i++)
		smalti_tile_release(q[i]);
}

/* MLP */

void smalti_dit_mlp(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
		    struct smalti_tile *x)
{
	const enum smalti_dtype dtype = f->dit->compute;
	const int64_t first_row = at.block * BLOCK_ROWS, rows = smalti_dit_rows(f, band);
	const int shards = weight_shards(f);
	smalti_dit_begin_phase(f, band, at.block, MLP);
	smalti_dit_go_home(f, at, band);
	struct smalti_tile *h = smalti_dit_modulate(f, band, x, f->modulation, first_row + SHIFT_MLP,
						    first_row + SCALE_MLP, f->dit->config.norm_eps);
	for (int i = 0; i < shards; i++) {
		const int shard = turn(f, band, i, shards);
		const struct smalti_dit_block *w = weights_of(f, at.block, shard);
		if (shards > 1 && f->shards->shard[shard].columns == 0)
			continue;
		go_to_weights(f, at, band, shard);
		struct smalti_tile *hidden =
		    smalti_linear(f->task_group, &w->ff_in, rows, dtype, h, SMALTI_EPILOGUE_GELU, dtype);
		smalti_linear_gate_add(f->task_group, &w->ff_out, rows, dtype, hidden, f->modulation,
				       first_row + GATE_MLP, x);
		smalti_tile_release(hidden);
	}
	smalti_tile_release(h);
}
