/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum smalti_access;
struct smalti_task_group;
struct smalti_tile;

/* The bytes that come to the places of a session (rt/places.h) for a task group's tasks, by stage and kind. A
 * tile comes to a place where a task reads it and the place does not have its last version. Bytes are counted
 * as tasks are inserted; other transfers of StarPU, such as evictions, are only in rt/transfers.h. */
enum smalti_move {
	SMALTI_MOVE_OTHER,
	SMALTI_MOVE_KEYS,       /* keys and values of other tokens or rows */
	SMALTI_MOVE_HEADS,      /* queries and results of heads */
	SMALTI_MOVE_SUMS,       /* what shards compute from and add to; statistics */
	SMALTI_MOVE_STREAM,     /* bands for their next stage; latents, predictions */
	SMALTI_MOVE_MODULATION, /* of the timestep */
	SMALTI_MOVE_HALO,       /* rows at the borders of bands */
	SMALTI_MOVE_WEIGHTS,    /* in the place's form */
	SMALTI_MOVES
};
extern const char *const smalti_move_names[SMALTI_MOVES];

/* A task group's moves. */
struct smalti_moves {
	int places;
	int64_t stages;
	double *bytes;   /* [stages][places][SMALTI_MOVES] */
	double *planned; /* [places][SMALTI_MOVES], of a pass; NULL: no plan */
};

/* Counts a tile that an inserted task accesses at this place; returns whether its data comes from another
 * place. For the inserting thread. */
bool smalti_moves_count(struct smalti_task_group *task_group, struct smalti_tile *tile,
			enum smalti_access access, int place);
/* Sets the plan of what should come to a place in a pass. For the inserting thread. */
void smalti_moves_plan(struct smalti_task_group *task_group, int place, const double bytes[SMALTI_MOVES]);

/* Returns the bytes that came to a place in a stage; all 0 where none did. */
const double *smalti_moves_at(const struct smalti_moves *moves, int64_t stage, int place);
void smalti_moves_free(struct smalti_moves *moves);
