/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/device.h"
#include "rt/task_message.h"

/* Tells which steps of a task a device may run beside each other. Each step keeps to a lane. Steps of one
 * lane follow one another, so they can share scratch. A step follows steps of other lanes only for memory
 * that both touch and one writes. */
struct smalti_lanes;

/* Assigns lanes to the steps of a task that a device runs. NULL with SMALTI_ENOMEM. Free with free(). */
struct smalti_lanes *smalti_lanes_new(const struct smalti_message *message, struct smalti_error *error);

/* Returns the lane of the step that smalti_lanes_go_on() takes next. */
int smalti_lanes_next(const struct smalti_lanes *lanes);

/* Takes the next step with the memories of its buffers (NULL: absent). Sets `behind` to the steps that must
 * end before it: the last one of each lane, from 0; -1: none. */
void smalti_lanes_go_on(struct smalti_lanes *lanes, const void *const memories[],
			int behind[SMALTI_DEVICE_LANES]);
