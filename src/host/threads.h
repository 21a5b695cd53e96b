/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Starts and ends `count` threads at once, and maps `bytes` bytes meanwhile, to check that the system
 * provides both: StarPU ends the program if it does not. -1 with SMALTI_ENOMEM. */
int smalti_threads_try(int count, int64_t bytes, struct smalti_error *error);
