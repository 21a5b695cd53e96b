/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/progress.h"
#include "rt/device_use.h"

/* What a session's devices did, at the end of a command; nothing where there are none. */

enum { SMALTI_DEVICE_LINE = 320 };
/* For people. */
void smalti_device_line(const struct smalti_device_use *use, char line[SMALTI_DEVICE_LINE]);
/* A line for each. */
void smalti_device_lines(struct smalti_progress *progress, struct smalti_session *session);
/* "devices" of an object. */
void smalti_device_json(cJSON *object, struct smalti_session *session);
