/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/task_message.h"

/* A task that is built while operations are added. */
struct smalti_recording {
	const char *name;
	int depth;                  /* of nested fusions */
	int place;                  /* of the first operation that has a place */
	struct smalti_tile *behind; /* what the first operation waits for; NULL: nothing */
	struct smalti_message *message;
	int capacity; /* of steps */
	int tiles;
	int64_t bytes; /* of the tiles */
	struct smalti_tile_use {
		struct smalti_tile *tile;
		enum smalti_access access; /* merged over all steps */
		int first, last;           /* steps */
	} use[SMALTI_TASK_TILES];
};

/* Adds an operation as a step. */
int smalti_recording_add(struct smalti_recording *recording, const struct smalti_op *op,
			 struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error);
/* Returns the number of a tile that the task uses already, else -1. */
int smalti_recording_number(const struct smalti_recording *recording, const struct smalti_tile *tile);

/* task_submit.c: submits the task, or leaves it to the rank that has its place, and takes its message. */
int smalti_recording_submit(struct smalti_task_group *task_group, struct smalti_recording *recording,
			    const char *name, int place, struct smalti_error *error);
