/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/attention.h"
#include "graphs/pixart/conditions.h"
#include "graphs/pixart/shards.h"

/* The parts of a transformer block (docs/reference.md 3.5) for a band of tokens, at the places of the
 * strategy. */

/* Rows of a block's modulation. */
enum { SHIFT_ATTENTION, SCALE_ATTENTION, GATE_ATTENTION, SHIFT_MLP, SCALE_MLP, GATE_MLP, BLOCK_ROWS };

/* Parts of a block, from the last to the first: every band's queries wait for the keys of all bands. */
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
	struct smalti_key_bands keys;   /* room for the keys of one attention */
	int *ranks;                     /* room for the ranks of these keys */
};

/* A position in the model. */
struct smalti_dit_position {
	int branch;
	int64_t block;
};

/* The input of a block's self-attention: a tile for each band and shard; NULL for bands that have none
 * yet. */
struct smalti_dit_projections {
	struct smalti_tile **q, **kv;
};

int64_t smalti_dit_rows(const struct smalti_dit_forward *f, int64_t band);
/* Places the following tasks at the band's home. */
void smalti_dit_go_home(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band);
void smalti_dit_begin_phase(const struct smalti_dit_forward *f, int64_t band, int64_t block,
			    enum smalti_dit_phase phase);

/* Tells whether all patches go through the layers together: in the warm-up, and if there is a single
 * patch. */
bool smalti_dit_together(const struct smalti_dit_forward *f);
/* Begins operations on one band that may become one task; if heads are cut, one task at each place. */
void smalti_dit_begin_task(const struct smalti_dit_forward *f, int64_t band, enum smalti_grain grain,
			   const char *name);
/* Begins operations on all bands and branches that may become one task. */
void smalti_dit_begin_pass(const struct smalti_dit_forward *f, int branches);
void smalti_dit_end_task(const struct smalti_dit_forward *f);

/* Returns LN(x)·(1 + scale) + shift of one band. */
struct smalti_tile *smalti_dit_modulate(const struct smalti_dit_forward *f, int64_t band,
					struct smalti_tile *x, struct smalti_tile *modulation,
					int64_t shift_row, int64_t scale_row, double epsilon);

/* Makes the lists for all bands; false, with the task group broken, if memory is missing. */
bool smalti_dit_projections_new(const struct smalti_dit_forward *f, struct smalti_dit_projections *p);
/* Makes the queries, keys and values of a band from LN-modulated x. */
void smalti_dit_project(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			struct smalti_tile *x, struct smalti_dit_projections *p);
/* Inserts x += gate ⊙ O(attention) for a band: its queries against the keys that the strategy lets it
 * read. */
void smalti_dit_self_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at,
			       int64_t band, const struct smalti_dit_projections *p, struct smalti_tile *x);
/* Releases these keys after their last reader was inserted. They are kept if a later task reads them. */
void smalti_dit_projections_release(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				    struct smalti_dit_projections *p);

/* Inserts x += O(attention(x, cache)), without norm, modulation and gate. */
void smalti_dit_cross_attention(const struct smalti_dit_forward *f, struct smalti_dit_position at,
				int64_t band, struct smalti_cross_cache *cache, struct smalti_tile *x);
/* Inserts x += gate ⊙ MLP(LN-modulated x). */
void smalti_dit_mlp(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
		    struct smalti_tile *x);
