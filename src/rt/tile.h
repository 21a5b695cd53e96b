/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bits.h"
#include "rt/moves.h"
#include "rt/task_group.h"

/* A tile is one piece of a tensor: `rows` rows of `row_bytes` bytes behind one StarPU handle. StarPU
 * allocates it where its first writer runs, and may move, evict or offload it. */
struct smalti_tile {
	struct _starpu_data_state *handle; /* once a task wants it; a plain session's tile has none */
	void *memory;                      /* of a plain session's tile, or the caller's that it lies over */
	struct smalti_pool *pool;          /* that the memory is of; NULL: it is the caller's */
	struct smalti_formed *formed;      /* the same of a tile of forms */
	struct smalti_counting *counting;  /* of a session that counts; else NULL */
	int64_t task_group;                /* that made it, by its number */
	int64_t number;                    /* tiles of a session are numbered as they are made, from 1 on */
	int64_t rows, row_bytes;
	int owner;             /* a place (rt/places.h), or SMALTI_ANYWHERE */
	enum smalti_move move; /* what is counted where it comes to a place */
	struct smalti_bits
	    holders; /* places that have what was written last; none: unknown, or nothing was */
	int rank;    /* over several ranks (rt/ranks.h), that wrote it last; in a session that counts, the
			place that wrote it first */
	struct smalti_bits seen; /* in a session that counts, places that have had it */
	bool held;          /* a task that is not whole yet uses it; its release waits until it is let go */
	int number_in_task; /* of that, or of a task before */
	bool released;
};

/* NULL, with the task group broken, when it cannot be had; also when the task group is broken already. */
struct smalti_tile *smalti_tile_new(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes);

/* A tile filled with a copy of `data`; empty, with the task group marked failed, where there is no memory for
 * that. */
struct smalti_tile *smalti_tile_upload(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				       const void *data);

/* A read-only tile over memory that outlives it, such as a mapped file: nothing is copied. */
struct smalti_tile *smalti_tile_over(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				     const void *data);

struct smalti_tile_forms;
/* A read-only tile that each kind of device has in a form of its own (rt/tile_forms.h). */
struct smalti_tile *smalti_tile_of_forms(struct smalti_task_group *task_group,
					 const struct smalti_tile_forms *forms);

/* Has what the tasks inserted so far write come to a memory node, as soon as it is written and there is room;
 * beside what tasks wait for. */
void smalti_tile_prefetch(struct smalti_tile *tile, unsigned node, int priority);

/* What it is counted as from here on, where it comes to a place. NULL is allowed. */
static inline void smalti_tile_moves_as(struct smalti_tile *tile, enum smalti_move move)
{
	if (tile)
		tile->move = move;
}

/* After the last task that uses it was inserted: the memory goes as soon as that task has ended. The
 * pointer is dead from here on. NULL is allowed. */
void smalti_tile_release(struct smalti_tile *tile);

/* A tile's owner is the place (rt/places.h) whose workers write it; at first it has none, and they do
 * anywhere. A task runs at the owner of the first tile that it writes that has one. One that makes new tiles,
 * of inputs that have owners, runs at the first of these, and its tiles are owned there; so what a grid's
 * distribution says of bands holds for what is computed from them, until an update of a tile without owner
 * joins them. */
/* For src/rt: the starpu_data_handle_t, registered now if it was not yet. */
void *smalti_tile_handle(struct smalti_tile *tile);
/* The same: where a plain session's tile lies; NULL with an error when its form cannot be made. */
void *smalti_tile_memory(const struct smalti_tile *tile, struct smalti_error *error);
/* The same: of one that is held. */
void smalti_tile_let_go(struct smalti_tile *tile);
/* The same: of one that is held, whether only what holds it knows it: it was made and released meanwhile. */
bool smalti_tile_is_local(const struct smalti_tile *tile);
