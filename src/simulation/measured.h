/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The times of tasks in real runs, from traces (`smalti generate --trace`), apart for CPUs and devices. A
 * task is found by its name and its key, which says what its time depends on. */
struct smalti_measured;

/* Reads files that are separated by commas. NULL with SMALTI_EIO or SMALTI_EFORMAT. */
struct smalti_measured *smalti_measured_read(const char *files, struct smalti_error *error);
void smalti_measured_free(struct smalti_measured *measured);

/* Returns the mean in seconds, plus the mean delay between a worker's tasks when the next one is ready; NAN:
 * no such task has run there. */
double smalti_measured_seconds(const struct smalti_measured *measured, const char *name, uint32_t key,
			       bool device);
