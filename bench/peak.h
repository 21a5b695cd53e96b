/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype_enum.h"

struct smalti_session;

/* The f32 operations per second that multiply-adds in registers reach now: the median of pieces of 0.1 ms
 * during 2 ms. The clock of a core follows its load, but some milliseconds late: right behind a kernel this
 * is the peak at the clock at which the kernel ran. Of the calling thread. */
double smalti_peak_here(void);

/* The same of all workers at once, which must be idle, or of the calling thread where there are none. */
double smalti_peak_of_workers(const struct smalti_session *session);

/* The operations per second of a worker's device, which must be idle, in large products of this dtype: the
 * best of a few. NAN where they cannot be made. */
double smalti_peak_of_device(const struct smalti_session *session, int worker, enum smalti_dtype dtype);
