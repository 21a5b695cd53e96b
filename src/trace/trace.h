/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Records what each worker did when, as Chrome's trace format (chrome://tracing, Perfetto): one row per
 * worker. A task has its name, request, stage (a denoising step, one more when decoding), layer, band of
 * rows, flops and rate, the numbers of the tasks that it waited for, when it was ready, and what the
 * performance models expected of it at each place, in microseconds. Counters show memory in tiles and tasks
 * in flight; `transfer` is a wait for data at the worker's memory. At the end are the bytes over each link,
 * what each device did (rt/device_use.h), what came to each place in each stage, beside the plan
 * (rt/task_transfers.h), and each place's workers. */
struct smalti_session;
struct smalti_trace;

/* Follows the session's tasks from here on. */
struct smalti_trace *smalti_trace_new(struct smalti_session *session, const char *path,
				      struct smalti_error *error);
/* Turns StarPU's profiling on after starpu_init(). */
int smalti_trace_start(struct smalti_trace *trace, struct smalti_error *error);
/* Writes the file, complete or not at all. Called once. */
int smalti_trace_write(struct smalti_trace *trace, struct smalti_error *error);
void smalti_trace_free(struct smalti_trace *trace);
