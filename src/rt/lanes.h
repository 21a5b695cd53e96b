/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device.h"
#include "rt/task_message.h"

/* Which steps of a task a device may run beside each other. Each step keeps to a lane. Those of a lane follow
 * one another, so that they can share scratch; those of another lane they follow only for what these write or
 * read. */
struct smalti_lanes;

/* Divides the steps of a task that a device runs. NULL with SMALTI_ENOMEM. free() frees it. */
struct smalti_lanes *smalti_lanes_new(const struct smalti_message *message, struct smalti_error *error);

/* Returns the lane of the step that smalti_lanes_go_on() is called for next. */
int smalti_lanes_next(const struct smalti_lanes *lanes);

/* Takes the next step with the memories of its buffers (NULL: absent). Has `behind` say which steps have to
 * end before it: of each lane the last one, from 0; -1: none. */
void smalti_lanes_go_on(struct smalti_lanes *lanes, const void *const memories[],
			int behind[SMALTI_DEVICE_LANES]);
