/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"

/* Tells which tasks a task waits for, by the tiles that both access, in the order of insertion: StarPU finds
 * this but does not tell. For the inserting thread. */
struct smalti_task_order;

struct smalti_task_order *smalti_task_order_new(struct smalti_error *error);
void smalti_task_order_free(struct smalti_task_order *order);

/* Notes a tile that the next inserted task uses. */
void smalti_task_order_uses(struct smalti_task_order *order, int64_t tile, enum smalti_access access);
/* Returns its number, from 0 on. Omits what has no memory. */
int64_t smalti_task_order_inserts(struct smalti_task_order *order);

/* Returns the numbers of the tasks that this one waits for. */
const int64_t *smalti_task_order_before(const struct smalti_task_order *order, int64_t task, int64_t *count);
