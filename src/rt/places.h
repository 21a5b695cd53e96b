/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_PLACES_H
#define SMALTI_RT_PLACES_H

#include "rt/op.h"
#include "rt/tile.h"

struct starpu_task;

/* The memories of a session with the workers that compute in them. Place 0 is main memory with the CPUs, the
 * others are devices, in StarPU's order. */
struct smalti_places;

/* After starpu_init(). Free it. */
struct smalti_places *smalti_places_new(struct smalti_error *error);
void smalti_places_free(struct smalti_places *places);
int smalti_places_count(const struct smalti_places *places);

/* Has the task run where the owner of a tile wants it, and its outputs be owned there: see rt/tile.h. A task
 * whose op has no function for the owner's kind of device runs anywhere. */
void smalti_places_choose(const struct smalti_places *places, const struct smalti_op *op,
			  struct smalti_tile *const *tiles, const void *arguments, struct starpu_task *task);

#endif
