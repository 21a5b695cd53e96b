/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/tile.h"

/* Delivers `count` floats of a tile to `to` on every rank (ranks/ranks.h), so that all decide alike. */
void smalti_deliver_to_all(struct smalti_task_group *task_group, struct smalti_tile *tile, int64_t count,
			   void *to);
