/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_THREADS_H
#define SMALTI_RT_THREADS_H

#include "base/error.h"

/* Starts and ends so many threads at once, to see whether the system gives them and some memory beside:
 * StarPU ends the program when it does not. -1 with SMALTI_ENOMEM. */
int smalti_threads_try(int count, struct smalti_error *error);

#endif
