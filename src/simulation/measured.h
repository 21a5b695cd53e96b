/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* What tasks took in real runs, as traces tell (`smalti generate --trace`): by a task's name and key, which
 * says what its time depends on, apart for CPUs and devices. */
struct smalti_measured;

/* Of files with commas between. NULL with SMALTI_EIO or SMALTI_EFORMAT. */
struct smalti_measured *smalti_measured_read(const char *files, struct smalti_error *error);
void smalti_measured_free(struct smalti_measured *measured);

/* The mean in seconds, with what lies between a worker's tasks on average when the next one is ready; NAN: no
 * such task has run there. */
double smalti_measured_seconds(const struct smalti_measured *measured, const char *name, uint32_t key,
			       bool device);
