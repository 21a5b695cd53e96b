/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bits.h"
#include "rt/task_group.h"
#include "rt/task_transfers.h"

/* A tile is one piece of a tensor: `rows` rows of `row_bytes` bytes behind one StarPU handle. StarPU
 * allocates it where its first writer runs, and may move, evict or offload it. */
struct smalti_tile {
	struct _starpu_data_state *handle; /* made when a task needs it; a sequential session has none */
	void *memory;                 /* a sequential session's, or the caller's under smalti_tile_over() */
	struct smalti_pool *pool;     /* of `memory`; NULL: the caller's memory */
	struct smalti_formed *formed; /* the memory of a tile of forms */
	struct smalti_counting *counting; /* the session's, if it counts; else NULL */
	int64_t task_group;               /* number of the group that made it */
	int64_t number;                   /* tiles of a session are numbered as they are made, from 1 on */
	int64_t rows, row_bytes;
	int owner;                               /* a place (rt/places.h), or SMALTI_ANYWHERE */
	enum smalti_transfer_kind transfer_kind; /* kind that is counted when it comes to a place */
	struct smalti_bits
	    valid_places; /* places that have its last version; none: unknown, or nothing was written */
	int rank; /* over several ranks (ranks/ranks.h) the last writer; in a session that counts the place
		     that wrote it first */
	struct smalti_bits seen; /* in a session that counts, places that have had it; in one that replays,
				    those where it was asked for */
	bool held;               /* an unfinished task uses it; its release waits until it is let go */
	int number_in_task;      /* in that task, or in an earlier one */
	bool released;
};

/* Makes a tile. NULL, with the task group broken, if that fails; also when the group is broken already. */
struct smalti_tile *smalti_tile_new(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes);

/* Makes a tile with a copy of `data`; without memory for the copy the task group fails, and the tile is
 * empty. */
struct smalti_tile *smalti_tile_upload(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				       const void *data);

/* As before, but only the rank of the task group's place has the data, and then the tile. */
struct smalti_tile *smalti_tile_upload_there(struct smalti_task_group *task_group, int64_t rows,
					     int64_t row_bytes, const void *data);

/* Makes a read-only tile over memory that outlives it, such as a mapped file, without a copy. */
struct smalti_tile *smalti_tile_over(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				     const void *data);

struct smalti_tile_forms;
/* Makes a read-only tile that has its own form on each kind of device (rt/tile_forms.h). */
struct smalti_tile *smalti_tile_of_forms(struct smalti_task_group *task_group,
					 const struct smalti_tile_forms *forms);

/* Has the tile that the tasks inserted so far write come to a memory node, as soon as it is written and there
 * is room, beside the data that tasks wait for. */
void smalti_tile_prefetch(struct smalti_tile *tile, unsigned node, int priority);

/* Has weights come to a place, once, when its link has nothing else to do, those of the highest priority
 * first. Does nothing with other tiles. */
void smalti_tile_prefetch_idle(struct smalti_tile *tile, int place, unsigned node, int priority);

/* Sets what it is counted as from here on, where it comes to a place. NULL is allowed. */
static inline void smalti_tile_set_transfer_kind(struct smalti_tile *tile, enum smalti_transfer_kind kind)
{
	if (tile)
		tile->transfer_kind = kind;
}

/* Releases the tile after its last task was inserted: the memory is freed as soon as that task has ended. The
 * pointer is invalid from here on. NULL is allowed. */
void smalti_tile_release(struct smalti_tile *tile);

/* A tile's owner is the place (rt/places.h) whose workers write it. At first it has none, and any worker
 * writes it. A task runs at the owner of the first tile that it writes and that has one. A task that makes
 * only new tiles runs at the first owner of its inputs, and that place owns its tiles. So a grid's
 * distribution of bands also holds for what is computed from them, until an update of a tile without owner
 * joins them. */
/* Returns the starpu_data_handle_t, registered now if it was not yet. Only src/rt calls what follows. */
void *smalti_tile_handle(struct smalti_tile *tile);
/* Returns the memory of a sequential session's tile; NULL with an error if its form cannot be made. */
void *smalti_tile_memory(const struct smalti_tile *tile, struct smalti_error *error);
/* Returns the bytes that move when it comes to a device. */
int64_t smalti_tile_moved_bytes(const struct smalti_tile *tile);
/* Brings what a task of a rank reads there, and invalidates other copies of what it writes. All ranks call it
 * before the task is inserted. */
void smalti_tile_bring(struct smalti_tile *tile, enum smalti_access access, int rank, int priority);
/* Lets go of a tile that is held. */
void smalti_tile_let_go(struct smalti_tile *tile);
/* Tells whether only the task that holds the tile knows it: it was made and released meanwhile. */
bool smalti_tile_is_local(const struct smalti_tile *tile);
