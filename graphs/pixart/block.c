/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/block.h"
#include "graphs/pixart/cross_cache.h"
#include "rt/task.h"

static const struct smalti_dit_task block_task = {SMALTI_GRAIN_BLOCK, "block", "block's gradients"},
				    parts_task = {SMALTI_GRAIN_HALF_BLOCK, "caption's keys",
						  "keys' gradients"},
				    keys_task = {SMALTI_GRAIN_HALF_BLOCK, "norm and projections",
						 "projections' gradients"},
				    attention_task = {SMALTI_GRAIN_HALF_BLOCK, "attention",
						      "attention's gradients"},
				    rest_task = {SMALTI_GRAIN_HALF_BLOCK, "attention and MLP",
						 "MLP's and caption's gradients"};

int smalti_dit_forward_open(struct smalti_dit_forward *f, struct smalti_error *error)
{
	const int64_t bands = f->tokens->partition.bands;
	f->keys = smalti_calloc(bands, sizeof(*f->keys), error);
	f->ranks = smalti_calloc(bands, sizeof(*f->ranks), error);
	if (f->tape->records)
		f->part = smalti_calloc(f->tape->parts, sizeof(*f->part), error);
	return f->keys && f->ranks && (f->part || !f->tape->records) ? 0 : -1;
}

void smalti_dit_forward_close(struct smalti_dit_forward *f)
{
	free(f->keys);
	free(f->ranks);
	free(f->part);
}

int64_t smalti_dit_rows(const struct smalti_dit_forward *f, int64_t band)
{
	return smalti_partition_rows(&f->tokens->partition, band);
}

/* Places */

/* Returns the place of a shard of a band. */
static int place_of(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
		    int shard)
{
	const int stage = smalti_strategy_stage(f->strategy, f->dit->config.layers, at.block);
	return smalti_strategy_place(f->strategy, at.branch, stage, shard, f->tokens->band[band].rank);
}

static void go_to(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band, int shard)
{
	if (f->tape->records)
		smalti_tape_go(f->tape, f->tokens->band[band].rank * f->shards->count + shard);
	else
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
static int shard_in_order(const struct smalti_dit_forward *f, int64_t band, int i, int shards)
{
	return weight_shards(f) > 1 ? (f->tokens->band[band].shard + 1 + i) % shards : i;
}

static struct smalti_heads heads_of(const struct smalti_dit_forward *f, int64_t count,
				    enum smalti_dtype dtype)
{
	return (struct smalti_heads){count, f->dit->config.head_dim, dtype};
}

/* Order and tasks */

bool smalti_dit_together(const struct smalti_dit_forward *f)
{
	return f->pass < f->strategy->warmup || f->strategy->patches == 1;
}

/* Sets the priority of what follows. A patch goes through all layers of a stage before the next one; its own
 * tasks run as they are ready. Keys that other places wait for, by the strategy, are made as early as
 * possible. In training tasks run in any order. */
void smalti_dit_begin_phase(const struct smalti_dit_forward *f, int64_t band, int64_t block,
			    enum smalti_dit_phase phase)
{
	enum { AHEAD = 2 * PHASES }; /* earlier blocks, which the other branch is in */
	const int64_t ahead = phase == KEYS && f->strategy->count > 1 ? AHEAD : 0;
	const int64_t bottom_level =
	    smalti_dit_together(f) ? (f->dit->config.layers - 1 - block) * PHASES + (int64_t)phase + 1 + ahead
				   : f->strategy->patches - f->tokens->band[band].patch;
	if (!f->tape->records)
		smalti_task_group_bottom_level(f->task_group, f->behind + bottom_level);
}

void smalti_dit_begin_task(const struct smalti_dit_forward *f, const struct smalti_dit_task *task,
			   double rows, int owner)
{
	const struct smalti_partition *partition = &f->tokens->partition;
	const double width = (double)f->dit->config.width, all = (double)partition->first[partition->bands];
	const struct smalti_fusion fusion = {task->name, task->grain, (28 * width + 4 * all) * width * rows,
					     owner};
	smalti_tape_begin_task(f->tape, &fusion, task->backward);
}

void smalti_dit_begin_band(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			   const struct smalti_dit_task *task)
{
	const int *owner = f->tokens->partition.owner;
	const double rows = (double)smalti_dit_rows(f, band) / f->shards->count;
	if (!f->tape->records) {
		smalti_dit_begin_task(f, task, rows, owner ? owner[band] : SMALTI_ANYWHERE);
		return;
	}
	smalti_task_group_at(f->task_group, at.block, band);
	smalti_dit_go_home(f, at, band);
	smalti_dit_begin_task(f, task, rows, f->tape->place[f->tape->part]);
}

/* What a block's bands read */

/* Returns a row of the block's modulation, where tasks run. */
static struct smalti_gate modulation_of(const struct smalti_dit_forward *f, int64_t block, int64_t row)
{
	return f->tape->records ? (struct smalti_gate){f->part[f->tape->part].modulation[row], row}
				: (struct smalti_gate){f->modulation, block * BLOCK_ROWS + row};
}

/* The rows of the modulation that norms and gates begin at. */
static const int read_rows[] = {SHIFT_ATTENTION, GATE_ATTENTION, SHIFT_MLP, GATE_MLP};

/* Makes the block's modulation at a part: of several bands once for each reader, because the sum of the
 * gradients of a value has an order, and no band is to wait until another one is through the whole block. */
static void make_modulation(const struct smalti_dit_forward *f, int64_t block, struct smalti_dit_part *part)
{
	const bool shared = f->tokens->partition.bands == 1;
	for (size_t i = 0; i < COUNT_OF(read_rows); i++) {
		struct smalti_value *modulation = &part->modulation[read_rows[i]];
		if (i > 0 && shared)
			*modulation = part->modulation[read_rows[0]];
		else
			smalti_layer_modulation(f->tape, f->dit->blocks[block].table, BLOCK_ROWS,
						f->conditions->adaln, BLOCK_ROWS, 0, modulation);
	}
}

/* Computes at each part what all its bands read. */
static void begin_parts(const struct smalti_dit_forward *f, struct smalti_dit_position at)
{
	struct smalti_tape *tape = f->tape;
	const int64_t tokens = f->caption.rows;
	for (int i = 0; tape->records && i < tape->parts; i++) {
		const struct smalti_dit_shard *shard = &f->shards->shard[i % f->shards->count];
		struct smalti_dit_part *part = &f->part[i];
		*part = (struct smalti_dit_part){.kv = {.tile = NULL}};
		smalti_tape_go(tape, i);
		smalti_dit_begin_task(f, &parts_task, (double)tokens, tape->place[i]);
		make_modulation(f, at.block, part);
		if (shard->heads > 0)
			part->kv = smalti_layer_linear(tape, &shard->blocks[at.block].cross.kv, f->caption,
						       f->dit->compute);
		smalti_tape_end_task(tape);
	}
}

static void end_parts(const struct smalti_dit_forward *f)
{
	for (int i = 0; f->tape->records && i < f->tape->parts; i++) {
		for (size_t row = 0; row < COUNT_OF(read_rows); row++)
			smalti_value_release(f->tape, &f->part[i].modulation[read_rows[row]]);
		smalti_value_release(f->tape, &f->part[i].kv);
	}
}

/* Returns the caption's keys and values for a shard's heads, where tasks run: without a cache the part's. */
static struct smalti_value caption_keys(const struct smalti_dit_forward *f, struct smalti_dit_position at,
					struct smalti_cross_cache *cache, int shard)
{
	if (!cache)
		return f->part[f->tape->part].kv;
	return weight_shards(f) > 1 ? smalti_dit_caption_shard(f, at, cache, shard) : cache->block[at.block];
}

/* Self-attention */

/* Its input: the queries, keys and values of each band and shard; without a tile for bands that have none
 * yet. */
struct projections {
	struct smalti_value *q, *kv;
};

/* Makes the lists for all bands; false, with the task group broken, if memory is missing. */
static bool open_projections(const struct smalti_dit_forward *f, struct projections *p)
{
	const int64_t count = f->tokens->partition.bands * f->shards->count;
	p->q = smalti_task_group_calloc(f->task_group, count, sizeof(*p->q));
	p->kv = smalti_task_group_calloc(f->task_group, count, sizeof(*p->kv));
	if (p->q && p->kv)
		return true;
	free(p->q);
	free(p->kv);
	return false;
}

/* Makes the queries, keys and values of a band. */
static void project(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
		    struct smalti_value x, const struct projections *p)
{
	struct smalti_tape *tape = f->tape;
	smalti_tile_set_transfer_kind(x.tile, SMALTI_TRANSFER_STREAM); /* from the stage before */
	smalti_dit_begin_phase(f, band, at.block, KEYS);
	smalti_dit_go_home(f, at, band);
	smalti_dit_begin_band(f, at, band, &keys_task);
	const struct smalti_gate shift = modulation_of(f, at.block, SHIFT_ATTENTION);
	struct smalti_value h =
	    smalti_layer_norm(tape, x, shift.modulation, shift.row, f->dit->config.norm_eps, f->dit->compute);
	smalti_tile_set_transfer_kind(h.tile, SMALTI_TRANSFER_SUMS);
	for (int shard = 0; shard < f->shards->count; shard++) {
		const struct smalti_dit_shard *s = &f->shards->shard[shard];
		const int64_t i = band * f->shards->count + shard;
		if (s->heads == 0)
			continue;
		go_to_weights(f, at, band, shard);
		const struct smalti_dit_attention *w = &s->blocks[at.block].self;
		/* keys and values first: others wait for them */
		p->kv[i] = smalti_layer_linear(tape, &w->kv, h, f->dit->attention);
		p->q[i] = smalti_layer_linear(tape, &w->q, h, f->dit->attention);
		smalti_tile_set_transfer_kind(p->q[i].tile, SMALTI_TRANSFER_HEADS);
		smalti_tile_set_transfer_kind(p->kv[i].tile, SMALTI_TRANSFER_KEYS);
	}
	smalti_value_release(tape, &h);
	smalti_tape_end_task(tape);
	smalti_tile_set_transfer_kind(x.tile, SMALTI_TRANSFER_SUMS);
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
static struct smalti_value *kept_of(const struct smalti_dit_forward *f, struct smalti_dit_position at)
{
	const int64_t count = f->tokens->partition.bands * f->shards->count;
	return f->conditions->kept
		   ? f->conditions->kept + (at.branch * f->dit->config.layers + at.block) * count
		   : NULL;
}

/* Returns the keys of band `other` that `band` reads: this pass's, if they are made and the strategy does not
 * ask for older ones. */
static struct smalti_value keys_for(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				    int64_t band, int64_t other, int shard, const struct projections *p)
{
	const struct smalti_value *kept = kept_of(f, at);
	const int64_t i = other * f->shards->count + shard;
	const bool older =
	    is_warm(f) && f->strategy->exchange == SMALTI_EXCHANGE_DISPLACED && !same_rank(f, band, other);
	return kept && (older || !p->kv[i].tile) ? kept[i] : p->kv[i];
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

static struct smalti_key_bands gather(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				      int64_t band, int shard, const struct projections *p)
{
	const int64_t bands = f->tokens->partition.bands, begin = ring_begin(f, band);
	struct smalti_key_bands keys = {
	    .kv = f->keys, .rank = f->strategy->exchange == SMALTI_EXCHANGE_RING ? f->ranks : NULL};
	for (int64_t i = 0; i < bands; i++) {
		const int64_t other = (begin + i) % bands;
		if (f->strategy->exchange >= SMALTI_EXCHANGE_MASKED && !same_rank(f, band, other))
			continue;
		f->keys[keys.blocks] = keys_for(f, at, band, other, shard, p);
		f->ranks[keys.blocks++] = f->tokens->band[other].rank;
	}
	return keys;
}

/* Inserts x + gate ⊙ O(attention) for a band: its queries against the keys that the strategy lets it read. */
static void self_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			   const struct projections *p, struct smalti_value *x)
{
	const int shards = f->shards->count;
	struct smalti_value sum = {.tile = NULL};
	smalti_dit_begin_phase(f, band, at.block, ATTENTION);
	for (int i = 0; i < shards; i++) {
		const int shard = shard_in_order(f, band, i, shards);
		const struct smalti_dit_shard *s = &f->shards->shard[shard];
		const struct smalti_heads heads = heads_of(f, s->heads, f->dit->attention);
		if (s->heads == 0)
			continue;
		go_to(f, at, band, shard);
		const struct smalti_key_bands keys = gather(f, at, band, shard, p);
		struct smalti_value o =
		    smalti_layer_attend(f->tape, &heads, p->q[band * shards + shard], &keys);
		smalti_tile_set_transfer_kind(o.tile, SMALTI_TRANSFER_HEADS);
		go_to_weights(f, at, band, shard);
		smalti_layer_add(f->tape, &s->blocks[at.block].self.out, o,
				 modulation_of(f, at.block, GATE_ATTENTION), x, &sum);
		smalti_value_release(f->tape, &o);
	}
	smalti_dit_go_home(f, at, band);
	smalti_layer_added(f->tape, modulation_of(f, at.block, GATE_ATTENTION), false, x, &sum);
}

/* Tells whether a later task of this pass or of the next one reads this pass's keys and values. */
static bool is_kept(const struct smalti_dit_forward *f)
{
	const bool next = f->pass + 1 < f->conditions->steps && f->pass + 1 >= f->strategy->warmup;
	return f->conditions->kept && (next || (is_warm(f) && f->strategy->parts[SMALTI_AXIS_STAGE] > 1));
}

/* Releases these keys after their last reader was inserted. They are kept if a later task reads them. */
static void close_projections(const struct smalti_dit_forward *f, struct smalti_dit_position at,
			      const struct projections *p)
{
	struct smalti_value *kept = kept_of(f, at);
	for (int64_t i = 0; i < f->tokens->partition.bands * f->shards->count; i++) {
		if (p->kv[i].tile && is_kept(f)) {
			smalti_value_release(f->tape, &kept[i]);
			kept[i] = p->kv[i];
			p->kv[i] = (struct smalti_value){.tile = NULL};
		}
		smalti_value_release(f->tape, &p->q[i]);
		smalti_value_release(f->tape, &p->kv[i]);
	}
	free(p->q);
	free(p->kv);
}

static bool goes_on(const struct smalti_dit_forward *f)
{
	return !smalti_task_group_broken(f->task_group);
}

void smalti_dit_attend(const struct smalti_dit_forward *f, struct smalti_dit_position at,
		       struct smalti_dit_range range, struct smalti_value *x)
{
	struct projections p;
	if (!open_projections(f, &p))
		return;
	for (int64_t b = range.begin; b < range.end && goes_on(f); b++)
		project(f, at, b, x[b], &p);
	for (int64_t b = range.begin; b < range.end && goes_on(f); b++) {
		smalti_dit_go_home(f, at, b);
		smalti_dit_begin_band(f, at, b, &attention_task);
		self_attention(f, at, b, &p, &x[b]);
		smalti_tape_end_task(f->tape);
	}
	close_projections(f, at, &p);
}

/* Cross-attention */

/* Adds what each shard's heads read of the caption. */
static void attend_caption(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			   struct smalti_cross_cache *cache, const struct smalti_value *q,
			   struct smalti_value *x)
{
	const int shards = weight_shards(f);
	const struct smalti_gate none = {.row = 0};
	struct smalti_value sum = {.tile = NULL};
	for (int i = 0; i < shards; i++) {
		const int shard = shard_in_order(f, band, i, shards);
		if (!q[i].tile)
			continue;
		go_to_weights(f, at, band, shard);
		const struct smalti_heads heads =
		    heads_of(f, q[i].columns / f->dit->config.head_dim, f->dit->compute);
		const struct smalti_value kv = caption_keys(f, at, cache, shard);
		const struct smalti_key_bands keys = {1, &kv, NULL};
		struct smalti_value o = smalti_layer_attend(f->tape, &heads, q[i], &keys);
		smalti_layer_add(f->tape, &weights_of(f, at.block, shard)->cross.out, o, none, x, &sum);
		smalti_value_release(f->tape, &o);
	}
	smalti_dit_go_home(f, at, band);
	smalti_layer_added(f->tape, none, false, x, &sum);
}

/* Inserts x + O(attention(x, caption)), without norm, modulation and gate. */
static void cross_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			    struct smalti_cross_cache *cache, struct smalti_value *x)
{
	const int shards = weight_shards(f);
	struct smalti_value q[SMALTI_MAX_SHARDS] = {{.tile = NULL}};
	smalti_dit_begin_phase(f, band, at.block, CROSS_ATTENTION);
	if (cache && cache->tokens == 1) {
		smalti_dit_go_home(f, at, band);
		smalti_insert(add_row, f->task_group, (.row = cache->block[at.block].tile, .y = x->tile),
			      .rows = x->rows, .dim = x->columns);
		return;
	}
	for (int i = 0; i < shards; i++) { /* all shards read x before the first one adds to it */
		const int shard = shard_in_order(f, band, i, shards);
		if (shards > 1 && f->shards->shard[shard].heads == 0)
			continue;
		go_to_weights(f, at, band, shard);
		q[i] = smalti_layer_linear(f->tape, &weights_of(f, at.block, shard)->cross.q, *x,
					   f->dit->compute);
	}
	attend_caption(f, at, band, cache, q, x);
	for (int i = 0; i < shards; i++)
		smalti_value_release(f->tape, &q[i]);
}

/* MLP */

/* Inserts x + gate ⊙ MLP(LN-modulated x). */
static void mlp(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band, bool last,
		struct smalti_value *x)
{
	const int shards = weight_shards(f);
	struct smalti_value sum = {.tile = NULL};
	smalti_dit_begin_phase(f, band, at.block, MLP);
	smalti_dit_go_home(f, at, band);
	const struct smalti_gate shift = modulation_of(f, at.block, SHIFT_MLP);
	struct smalti_value h = smalti_layer_norm(f->tape, *x, shift.modulation, shift.row,
						  f->dit->config.norm_eps, f->dit->compute);
	smalti_tile_set_transfer_kind(h.tile, SMALTI_TRANSFER_SUMS);
	for (int i = 0; i < shards; i++) {
		const int shard = shard_in_order(f, band, i, shards);
		const struct smalti_dit_block *w = weights_of(f, at.block, shard);
		if (shards > 1 && f->shards->shard[shard].columns == 0)
			continue;
		go_to_weights(f, at, band, shard);
		struct smalti_value hidden =
		    smalti_layer_activated(f->tape, &w->ff_in, h, SMALTI_EPILOGUE_GELU, f->dit->compute);
		smalti_layer_add(f->tape, &w->ff_out, hidden, modulation_of(f, at.block, GATE_MLP), x, &sum);
		smalti_value_release(f->tape, &hidden);
	}
	smalti_value_release(f->tape, &h);
	smalti_dit_go_home(f, at, band);
	smalti_layer_added(f->tape, modulation_of(f, at.block, GATE_MLP), last, x, &sum);
}

void smalti_dit_block(const struct smalti_dit_forward *f, struct smalti_dit_position at,
		      struct smalti_dit_range range, bool attended, struct smalti_cross_cache *cache,
		      bool last, struct smalti_value *x)
{
	const bool single = f->tokens->partition.bands == 1; /* no task waits for other bands */
	const bool apart = f->tape->records, joined = !apart && !attended;
	struct projections p;
	if (joined && !open_projections(f, &p))
		return;
	if (single)
		smalti_dit_begin_band(f, at, 0, &block_task);
	begin_parts(f, at);
	if (apart && !attended)
		smalti_dit_attend(f, at, range, x);
	for (int64_t b = range.begin; joined && b < range.end; b++)
		project(f, at, b, x[b], &p);
	for (int64_t b = range.begin; b < range.end && goes_on(f); b++) {
		smalti_dit_begin_band(f, at, b, &rest_task);
		if (joined)
			self_attention(f, at, b, &p, &x[b]);
		cross_attention(f, at, b, cache, &x[b]);
		mlp(f, at, b, last, &x[b]);
		smalti_tape_end_task(f->tape);
	}
	end_parts(f);
	if (joined)
		close_projections(f, at, &p);
	if (single)
		smalti_tape_end_task(f->tape);
}

struct smalti_value smalti_dit_project_out(const struct smalti_dit_forward *f, struct smalti_value final,
					   struct smalti_value x)
{
	const double epsilon = 1e-6; /* fixed, independent of norm_eps */
	struct smalti_value h = smalti_layer_norm(f->tape, x, final, 0, epsilon, f->dit->compute);
	smalti_tile_set_transfer_kind(h.tile, SMALTI_TRANSFER_SUMS);
	const struct smalti_value v = smalti_layer_linear(f->tape, &f->dit->out, h, SMALTI_F32);
	smalti_value_release(f->tape, &h);
	return v;
}
