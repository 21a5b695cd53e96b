/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype_enum.h"

struct smalti_session;

/* Returns the f32 operations per second of multiply-adds in registers now, in the calling thread: the median
 * of pieces of 0.1 ms during 2 ms. The clock of a core follows its load after some milliseconds, so this is
 * the peak at a kernel's clock if the call follows the kernel at once. */
double smalti_peak_here(void);

/* Returns the sum of these of all workers at once, which must be idle; without workers the calling thread's.
 */
double smalti_peak_of_workers(const struct smalti_session *session);

/* Returns the operations per second of a worker's device, which must be idle, in large products of this
 * dtype: the best of a few. NAN where it cannot make them. */
double smalti_peak_of_device(const struct smalti_session *session, int worker, enum smalti_dtype dtype);
