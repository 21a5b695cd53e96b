/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/attention.h"
#include "graphs/pixart/conditions.h"
#include "graphs/pixart/shards.h"

/* The parts of a transformer block (docs/reference.md 3.5) for a band of tokens, where the strategy has them
 * computed. */

/* Rows of a block's modulation. */
enum { SHIFT_ATTENTION, SCALE_ATTENTION, GATE_ATTENTION, SHIFT_MLP, SCALE_MLP, GATE_MLP, BLOCK_ROWS };

/* Parts of a block, by what is behind them: every band's queries wait for the keys of all. */
enum smalti_dit_phase { MLP, CROSS_ATTENTION, ATTENTION, KEYS, PHASES };

/* A forward under way. */
struct smalti_dit_forward {
	int64_t behind; /* phases of later forwards */
	int64_t pass;
	struct smalti_dit *dit;
	struct smalti_task_group *task_group;
	struct smalti_conditions *conditions;
	const struct smalti_tokens *tokens;
	const struct smalti_strategy *strategy;
	const struct smalti_dit_shards *shards;
	struct smalti_tile *modulation; /* [layers·6, width] */
	struct smalti_key_bands keys;   /* room for those of one attention … */
	int *ranks;                     /* … and for their ranks */
};

/* Where in the model. */
struct smalti_dit_position {
	int branch;
	int64_t block;
};

/* What a block's self-attention reads: of each band, a tile for each shard; NULL of bands that have none yet.
 */
struct smalti_dit_projections {
	struct smalti_tile **q, **kv;
};

int64_t smalti_dit_rows(const struct smalti_dit_forward *f, int64_t band);
/* Has tasks run where the band is at home. */
void smalti_dit_go_home(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band);
void smalti_dit_begin_phase(const struct smalti_dit_forward *f, int64_t band, int64_t block,
			    enum smalti_dit_phase phase);

/* All patches go through the layers at once: in the warm-up, and where there is but one. */
bool smalti_dit_together(const struct smalti_dit_forward *f);
/* A region of operations on one band that may become one task, or where heads are cut one at each place. */
void smalti_dit_begin_task(const struct smalti_dit_forward *f, int64_t band, enum smalti_grain grain,
			   const char *name);
/* Begins such a region of all bands and branches. */
void smalti_dit_begin_pass(const struct smalti_dit_forward *f, int branches);
void smalti_dit_end_task(const struct smalti_dit_forward *f);

/* LN(x)·(1 + scale) + shift of one band. */
struct smalti_tile *smalti_dit_modulate(const struct smalti_dit_forward *f, int64_t band,
					struct smalti_tile *x, struct smalti_tile *modulation,
					int64_t shift_row, int64_t scale_row, double epsilon);

/* Of all bands; false, with the task group broken, when there is no memory for them. */
bool smalti_dit_projections_new(const struct smalti_dit_forward *f, struct smalti_dit_projections *p);
/* The queries, keys and values of a band, of LN-modulated x. */
void smalti_dit_project(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			struct smalti_tile *x, struct smalti_dit_projections *p);
/* A band of x += gate ⊙ O(attention): its queries against the keys that the strategy has it read. */
void smalti_dit_self_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at,
			       int64_t band, const struct smalti_dit_projections *p, struct smalti_tile *x);
/* After the last one that reads these keys as the current ones: they are kept if a later task reads them. */
void smalti_dit_projections_release(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				    struct smalti_dit_projections *p);

/* x += O(attention(x, cache)): neither norm, nor modulation, nor gate. */
void smalti_dit_cross_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				int64_t band, struct smalti_cross_cache *cache, struct smalti_tile *x);
/* x += gate ⊙ MLP(LN-modulated x). */
void smalti_dit_mlp(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
		    struct smalti_tile *x);
