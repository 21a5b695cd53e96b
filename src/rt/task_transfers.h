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
enum smalti_transfer_kind {
	SMALTI_TRANSFER_OTHER,
	SMALTI_TRANSFER_KEYS,       /* keys and values of other tokens or rows */
	SMALTI_TRANSFER_HEADS,      /* queries and results of heads */
	SMALTI_TRANSFER_SUMS,       /* what shards compute from and add to; statistics */
	SMALTI_TRANSFER_STREAM,     /* bands for their next stage; latents, predictions */
	SMALTI_TRANSFER_MODULATION, /* of the timestep */
	SMALTI_TRANSFER_HALO,       /* rows at the borders of bands */
	SMALTI_TRANSFER_WEIGHTS,    /* in the place's form */
	SMALTI_TRANSFER_KINDS
};
extern const char *const smalti_transfer_kind_names[SMALTI_TRANSFER_KINDS];

/* A task group's transfers. */
struct smalti_task_transfers {
	int places;
	int64_t stages;
	double *bytes;   /* [stages][places][SMALTI_TRANSFER_KINDS] */
	double *planned; /* [places][SMALTI_TRANSFER_KINDS], of a pass; NULL: no plan */
};

/* Counts a tile that an inserted task accesses at this place; returns whether its data comes from another
 * place. For the inserting thread. */
bool smalti_task_transfers_count(struct smalti_task_group *task_group, struct smalti_tile *tile,
				 enum smalti_access access, int place);
/* Sets the plan of what should come to a place in a pass. For the inserting thread. */
void smalti_task_transfers_plan(struct smalti_task_group *task_group, int place,
				const double bytes[SMALTI_TRANSFER_KINDS]);

/* Returns the bytes that came to a place in a stage; all 0 where none did. */
const double *smalti_task_transfers_at(const struct smalti_task_transfers *transfers, int64_t stage,
				       int place);
void smalti_task_transfers_free(struct smalti_task_transfers *transfers);
