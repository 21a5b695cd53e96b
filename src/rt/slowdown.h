/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Slows workers down, for experiments with scheduling. SMALTI_SLOWDOWN is a list such as
 * "cpu1:3,opencl0:2.5". On a named worker every task takes that many times as long. */
extern const char smalti_slowdown_variable[];
const char *smalti_slowdown_text(void); /* NULL: no worker is slowed down */

/* Returns each worker's factor, all 1 without the variable; StarPU is running. NULL with SMALTI_EINVAL (no
 * such worker, a factor below 1). */
double *smalti_slowdown_new(struct smalti_error *error);
/* Waits until `seconds` seconds have become `factor` times as long. */
void smalti_slowdown_wait(double factor, double seconds);
