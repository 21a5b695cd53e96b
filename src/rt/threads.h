/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Starts and ends so many threads at once, and asks for so many bytes meanwhile, to see whether the system
 * gives both: StarPU ends the program when it does not. -1 with SMALTI_ENOMEM. */
int smalti_threads_try(int count, int64_t bytes, struct smalti_error *error);
