/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/progress.h"
#include "rt/device_use.h"

/* These tell, at the end of a command, what a session's devices did; nothing without devices. */

enum { SMALTI_DEVICE_LINE = 320 };
/* Writes a line for people. */
void smalti_device_line(const struct smalti_device_use *use, char line[SMALTI_DEVICE_LINE]);
/* Prints a line for each, and one on too large tasks. */
void smalti_device_lines(struct smalti_progress *progress, struct smalti_session *session);
/* Adds "devices" and "too_large" to an object. */
void smalti_device_json(cJSON *object, struct smalti_session *session);
