/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum smalti_access;
struct smalti_task_group;
struct smalti_tile;

/* What comes to the places of a session (rt/places.h) for a task group's tasks, stage by stage, by what it
 * is: a tile comes to a place where a task reads it that does not have what was written last. It is counted
 * as tasks are inserted; what StarPU moves besides, such as what it has evicted, is in rt/transfers.h alone.
 */
enum smalti_move {
	SMALTI_MOVE_OTHER,
	SMALTI_MOVE_KEYS,       /* keys and values of other tokens or rows */
	SMALTI_MOVE_HEADS,      /* queries and results of heads */
	SMALTI_MOVE_SUMS,       /* what shards compute from and add to; statistics */
	SMALTI_MOVE_STREAM,     /* bands that go to their next stage; latents, predictions */
	SMALTI_MOVE_MODULATION, /* of the timestep */
	SMALTI_MOVE_HALO,       /* rows at the borders of bands */
	SMALTI_MOVE_WEIGHTS,    /* in the form that the place wants */
	SMALTI_MOVES
};
extern const char *const smalti_move_names[SMALTI_MOVES];

/* A task group's. */
struct smalti_moves {
	int places;
	int64_t stages;
	double *bytes;   /* [stages][places][SMALTI_MOVES] */
	double *planned; /* [places][SMALTI_MOVES], of a pass; NULL: nothing was */
};

/* A task is inserted that runs at this place and accesses the tile so: whether what it reads has to come
 * there from another place. By the inserting thread. */
bool smalti_moves_count(struct smalti_task_group *task_group, struct smalti_tile *tile,
			enum smalti_access access, int place);
/* What should come to a place in a pass. By the inserting thread. */
void smalti_moves_plan(struct smalti_task_group *task_group, int place, const double bytes[SMALTI_MOVES]);

/* What came to a place in a stage; all 0 where nothing did. */
const double *smalti_moves_at(const struct smalti_moves *moves, int64_t stage, int place);
void smalti_moves_free(struct smalti_moves *moves);
