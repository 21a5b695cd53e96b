/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/tile.h"

struct starpu_task;

/* The memories of a session with the workers that compute in them. Place 0 is main memory with the CPUs, the
 * others are devices, in StarPU's order. Over several ranks (rt/ranks.h) each of these is one place instead.
 */
struct smalti_places;

/* Of the devices that have a memory node; SMALTI_DEVICE_CPU: main memory or a disk. */
enum smalti_device_kind smalti_memory_kind(unsigned node);

/* After starpu_init(). Free with free(). */
struct smalti_places *smalti_places_new(struct smalti_error *error);
int smalti_places_count(const struct smalti_places *places);
unsigned smalti_places_node(const struct smalti_places *places, int place);
/* The first worker there from `worker` on; -1: none. */
int smalti_places_worker(const struct smalti_places *places, int place, int worker);
/* Of the speeds of all workers, the highest at a place, at SMALTI_ANYWHERE of all. */
double smalti_places_speed(const struct smalti_places *places, const double *speeds, int place);

/* The place that an operation on these tiles belongs to: the one that is asked for, or else by the rule of
 * rt/tile.h; what it makes is owned there. */
int smalti_places_own(const struct smalti_op *op, struct smalti_tile *const *tiles, const void *arguments,
		      int asked);
/* Has a task that knows its tiles run at this place alone, if its codelet can run there and its tiles fit;
 * else, at SMALTI_ANYWHERE, and at a place that is lost (but for reproducible results) anywhere. */
void smalti_places_restrict(const struct smalti_session *session, int place, struct starpu_task *task);
