/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"

/* Which tasks a task waits for, by the tiles that both touch, in the order of insertion: what StarPU finds
 * for itself and does not tell. By the inserting thread. */
struct smalti_task_order;

struct smalti_task_order *smalti_task_order_new(struct smalti_error *error);
void smalti_task_order_free(struct smalti_task_order *order);

/* Of the task that is inserted next. */
void smalti_task_order_uses(struct smalti_task_order *order, int64_t tile, enum smalti_access access);
/* Its number, from 0 on. What there is no memory for is left out. */
int64_t smalti_task_order_inserts(struct smalti_task_order *order);

/* The numbers of the tasks that this one waits for. */
const int64_t *smalti_task_order_before(const struct smalti_task_order *order, int64_t task, int64_t *count);
