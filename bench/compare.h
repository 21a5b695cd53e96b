/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* An earlier report, JSON Lines as `smalti-bench` writes them: names and seconds. */
struct smalti_baseline;

/* Reads a report of the same command, "smalti-bench kernels". NULL with SMALTI_EIO or SMALTI_EFORMAT and a
 * message that names file and line. */
struct smalti_baseline *smalti_baseline_read(const char *path, const char *command,
					     struct smalti_error *error);
/* NULL is allowed. */
void smalti_baseline_free(struct smalti_baseline *baseline);

/* Returns seconds / those of the report; NAN for an unknown name, or without a baseline. The mean is over all
 * that were asked for and there. */
double smalti_baseline_ratio(struct smalti_baseline *baseline, const char *name, double seconds);
/* Returns the geometric mean of these ratios, and their number. */
double smalti_baseline_mean(const struct smalti_baseline *baseline, int *count);
