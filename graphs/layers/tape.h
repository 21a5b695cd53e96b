/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/attention.h"
#include "graphs/value.h"
#include "graphs/weights.h"
#include "rt/task.h"

/* A graph that layers insert (graphs/layers/layers.h), and what its backward needs. Without `records` a layer
 * inserts its forward alone, fused as far as possible, and changes values in place. With `records` it also
 * leaves a record, and smalti_tape_backward() inserts the records' backwards in the reverse order.
 *
 * Parts are the places that a strategy computes at. A value has a gradient, f32, at each part where a layer
 * reads it, if it depends on a weight that is trained; else the backwards that would make it are left out.
 * These are added up in the order of the parts, from the value's own on, when the backward reaches the layer
 * that made the value. So every sum has an order of its own, whatever runs first. */
struct smalti_tape;
struct smalti_record;

struct smalti_layer {
	/* Inserts the forward into y, once more for a result that is not kept; NULL: it is kept. */
	void (*again)(struct smalti_tape *tape, const struct smalti_record *record, struct smalti_tile *y);
	void (*backward)(struct smalti_tape *tape, const struct smalti_record *record);
};

/* A record says what a layer did. Members that it does not need are 0. */
struct smalti_record {
	const struct smalti_layer *layer;
	int part;
	struct smalti_value x, added, modulation, y; /* y: the result */
	bool adds;                                   /* to y, which an earlier record made */
	const struct smalti_linear *linear;
	struct smalti_weight *table;
	struct smalti_heads heads;
	struct smalti_value lse, *keys; /* keys: owned */
	int64_t count, row, period;     /* count: of keys; row: of the modulation */
	double epsilon;
	struct smalti_fusion fusion; /* of the backward of a task */
	struct smalti_position at;
};

/* A value on a tape. */
struct smalti_variable {
	struct smalti_tile *tile; /* NULL: it is not there */
	int64_t count;            /* of its elements */
	int part;                 /* where it was made */
	int64_t record;           /* that made it; -1: none */
	bool read;                /* by a backward */
	bool held;                /* not released yet by the graph that made it */
	bool constant;            /* it depends on nothing that is trained, and has no gradient */
	bool lent;                /* its gradient is another's */
};

struct smalti_tape {
	struct smalti_task_group *task_group;
	bool records;
	bool keeps_all;               /* no result is released before the tape */
	bool bounded;                 /* smalti_tape_barrier() orders tasks */
	int part, parts;              /* part: where tasks run */
	const int *place;             /* of each part */
	struct smalti_tile **barrier; /* of each part: written by its last barrier; NULL: none was inserted */
	struct smalti_variable *variables;
	struct smalti_tile **gradients; /* of each variable at each part */
	int64_t variable_count;
	struct smalti_record *list;
	int64_t count;
	int64_t open; /* the innermost task that has begun and not ended; -1: none */
	/* The gradients of the weights: of each part and parameter; `written`: they are to be added to. */
	struct smalti_tile *const *const *weights;
	int64_t parameters;
	bool *written;
};

/* Releases all that is left. */
void smalti_tape_free(struct smalti_tape *tape);

/* Has the following tasks run at a part. */
void smalti_tape_go(struct smalti_tape *tape, int part);
/* Makes later tasks begin behind all earlier ones of their part, if the tape is bounded. Otherwise tasks that
 * need little run far ahead: layers are recomputed before they are read, and gradients of weights wait with
 * all that they read. */
void smalti_tape_barrier(struct smalti_tape *tape);
/* Begins operations up to smalti_tape_end_task() that may become one task, and so may their backwards, under
 * the name `backward`. */
void smalti_tape_begin_task(struct smalti_tape *tape, const struct smalti_fusion *fusion,
			    const char *backward);
void smalti_tape_end_task(struct smalti_tape *tape);

/* Returns a new value. */
struct smalti_value smalti_value_new(struct smalti_tape *tape, int64_t rows, int64_t columns,
				     enum smalti_dtype dtype);
/* Returns a new value without a tile. */
struct smalti_value smalti_value_declare(struct smalti_tape *tape, int64_t rows, int64_t columns,
					 enum smalti_dtype dtype);
/* Sets whether nobody wants a value's gradient; at first it is wanted. */
void smalti_value_set_constant(struct smalti_tape *tape, struct smalti_value value, bool constant);
/* Releases a value after its last reader was inserted. On a tape the tile stays if a backward reads it. */
void smalti_value_release(struct smalti_tape *tape, struct smalti_value *value);

/* Leaves a record, if the tape records. */
void smalti_tape_record(struct smalti_tape *tape, const struct smalti_record *record);
/* Inserts the forward of a layer that can be inserted again, and leaves its record. Returns the result, whose
 * extents and dtype are those of record->y. */
struct smalti_value smalti_tape_make(struct smalti_tape *tape, struct smalti_record *record);
/* Says that a backward reads a value. */
void smalti_tape_reads(struct smalti_tape *tape, struct smalti_value value);
/* A position on a tape. */
struct smalti_tape_mark {
	int64_t record, variable;
};
static inline struct smalti_tape_mark smalti_tape_mark(const struct smalti_tape *tape)
{
	return (struct smalti_tape_mark){tape->count, tape->variable_count};
}
/* Drops the records from a mark on, and the values made since that were released. */
void smalti_tape_drop(struct smalti_tape *tape, struct smalti_tape_mark mark);
/* Releases a value at once. */
void smalti_tape_forget(struct smalti_tape *tape, struct smalti_value value);
/* Begins the backward: the gradients of the weights, to be added to or written. -1 with the task group
 * broken. */
int smalti_tape_begin_backward(struct smalti_tape *tape, struct smalti_tile *const *const *weights,
			       int64_t parameters, bool add);
/* Inserts the backwards of the records from a mark on, and drops these. */
void smalti_tape_backward(struct smalti_tape *tape, struct smalti_tape_mark mark);

/* The backwards of layers use these. */

/* Returns a value's tile, which is made again if it is not there. */
struct smalti_tile *smalti_tape_tile(struct smalti_tape *tape, struct smalti_value value);
/* Returns the sum of a value's gradients; NULL: there is none. */
struct smalti_tile *smalti_tape_gradient(struct smalti_tape *tape, struct smalti_value value);
/* Returns a value's gradient at this part, to be written or with *add added to; NULL: it has none. */
struct smalti_tile *smalti_tape_into(struct smalti_tape *tape, struct smalti_value value, bool *add);
/* The same of any value: an operation that makes several gradients at once makes all of them. */
struct smalti_tile *smalti_tape_into_any(struct smalti_tape *tape, struct smalti_value value, bool *add);
/* The same, but always to be added to. */
struct smalti_tile *smalti_tape_onto(struct smalti_tape *tape, struct smalti_value value);
/* Gives the gradient of `from`, which no one reads after this, to `to`. */
void smalti_tape_hand_over(struct smalti_tape *tape, struct smalti_value from, struct smalti_value to);
/* Has the gradient of `from` be that of `to`, too, whose readers are inserted before it changes. */
void smalti_tape_lend(struct smalti_tape *tape, struct smalti_value from, struct smalti_value to);
/* Returns the gradient of a weight's part `index`, to be written or with *add added to; NULL: it is not
 * trained. */
struct smalti_tile *smalti_tape_weight(struct smalti_tape *tape, const struct smalti_weight *weight,
				       int index, bool *add);
/* Inserts y = x, or with `add` y += x, of `count` floats. */
void smalti_tape_add(struct smalti_tape *tape, int64_t count, struct smalti_tile *x, bool add,
		     struct smalti_tile *y);
