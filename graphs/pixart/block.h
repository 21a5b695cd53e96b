/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/layers/layers.h"
#include "graphs/pixart/conditions.h"
#include "graphs/pixart/shards.h"

/* A transformer block (docs/reference.md 3.5) in bands of tokens, at the places of the strategy. */

/* Rows of a block's modulation: shift, scale and gate of attention, then of the MLP. */
enum { SHIFT_ATTENTION, GATE_ATTENTION = 2, SHIFT_MLP, GATE_MLP = 5, BLOCK_ROWS };

/* Parts of a block, from the last to the first: every band's queries wait for the keys of all bands. */
enum smalti_dit_phase { MLP, CROSS_ATTENTION, ATTENTION, KEYS, PHASES };

/* What the bands of a block read at a part, on a tape that records: the block's modulation, and the caption's
 * keys and values for the part's heads. Each row of the modulation is read in a copy of its own: a band's
 * gradient of one row does not wait for other bands' gradients of later rows. */
struct smalti_dit_part {
	struct smalti_value modulation[BLOCK_ROWS], kv;
};

/* A forward under way. */
struct smalti_dit_forward {
	int64_t behind; /* phases of later forwards */
	int64_t pass;
	struct smalti_dit *dit;
	struct smalti_task_group *task_group;
	struct smalti_tape *tape;
	struct smalti_conditions *conditions;
	const struct smalti_tokens *tokens;
	const struct smalti_strategy *strategy;
	const struct smalti_dit_shards *shards;
	struct smalti_value modulation; /* of all blocks [layers·6, width], where no tape records */
	struct smalti_value caption;    /* in the model's width, where a tape records */
	struct smalti_dit_part *part;   /* of each part, where a tape records */
	struct smalti_value *keys;      /* room for the keys of one attention */
	int *ranks;                     /* room for the ranks of these keys */
};

/* A position in the model. */
struct smalti_dit_position {
	int branch;
	int64_t block;
};

/* A range of neighbouring bands. */
struct smalti_dit_range {
	int64_t begin, end;
};

/* Allocates and frees the lists of a forward; -1 without memory. @{ */
int smalti_dit_forward_open(struct smalti_dit_forward *f, struct smalti_error *error);
void smalti_dit_forward_close(struct smalti_dit_forward *f);
/* @} */

int64_t smalti_dit_rows(const struct smalti_dit_forward *f, int64_t band);
/* Places the following tasks at the band's home. */
void smalti_dit_go_home(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band);
void smalti_dit_begin_phase(const struct smalti_dit_forward *f, int64_t band, int64_t block,
			    enum smalti_dit_phase phase);
/* Tells whether all patches go through the layers together: in the warm-up, and if there is a single
 * patch. */
bool smalti_dit_together(const struct smalti_dit_forward *f);

/* Begins operations on some rows, up to smalti_tape_end_task(), that may become one task; if heads are cut,
 * one task at each place. `owner`: where they run. */
struct smalti_dit_task {
	enum smalti_grain grain;
	const char *name, *backward; /* backward: the name of the gradients' task */
};
void smalti_dit_begin_task(const struct smalti_dit_forward *f, const struct smalti_dit_task *task,
			   double rows, int owner);
/* Begins operations on a band. */
void smalti_dit_begin_band(const struct smalti_dit_forward *f, struct smalti_dit_position at, int64_t band,
			   const struct smalti_dit_task *task);

/* Inserts the self-attention of a block for a range of bands of the stream x. */
void smalti_dit_attend(const struct smalti_dit_forward *f, struct smalti_dit_position at,
		       struct smalti_dit_range range, struct smalti_value *x);
/* Inserts a block, whose self-attention was perhaps inserted before. Without a cache it reads f->caption. If
 * it is `last` on a tape, nobody needs the tiles of its results. */
void smalti_dit_block(const struct smalti_dit_forward *f, struct smalti_dit_position at,
		      struct smalti_dit_range range, bool attended, struct smalti_cross_cache *cache,
		      bool last, struct smalti_value *x);

/* Returns the output projection of a band's x (3.7), in f32. */
struct smalti_value smalti_dit_project_out(const struct smalti_dit_forward *f, struct smalti_value final,
					   struct smalti_value x);
