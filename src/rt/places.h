/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/tile.h"

struct starpu_task;

/* The memories of a session with the workers that compute in them. Place 0 is main memory with the CPUs, the
 * others are devices, in StarPU's order. Over several ranks (ranks/ranks.h) each rank is one place
 * instead. */
struct smalti_places;

/* Returns the kind of device of a memory node; SMALTI_DEVICE_CPU: main memory or a disk. */
enum smalti_device_kind smalti_memory_kind(unsigned node);

/* Finds the places after starpu_init(). Free with free(). */
struct smalti_places *smalti_places_new(struct smalti_error *error);
int smalti_places_count(const struct smalti_places *places);
/* Returns the place of the device with the least memory, and its shares; 0, and INT64_MAX for each, where
 * there are no devices or, as in a sequential session, no places. */
int smalti_places_smallest(const struct smalti_places *places, struct smalti_device_shares *shares);
unsigned smalti_places_node(const struct smalti_places *places, int place);
/* Returns the place's first worker from `worker` on; -1: none. */
int smalti_places_worker(const struct smalti_places *places, int place, int worker);
/* Returns the highest of the workers' speeds at a place, or of all at SMALTI_ANYWHERE. */
double smalti_places_speed(const struct smalti_places *places, const double *speeds, int place);

/* Returns the place of an operation on these tiles: the one that is asked for, else by the rule of rt/tile.h.
 * That place owns the tiles that the operation makes. */
int smalti_places_own(const struct smalti_op *op, struct smalti_tile *const *tiles, const void *arguments,
		      int asked);
/* Restricts a task that knows its tiles to this place, if its codelet can run there and its tiles fit.
 * Otherwise, at SMALTI_ANYWHERE, and at a lost place (except for reproducible results) the task may run
 * anywhere. */
void smalti_places_restrict(const struct smalti_session *session, int place, struct starpu_task *task);
