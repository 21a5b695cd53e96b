/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A record of what each worker did when, written as Chrome's trace format (chrome://tracing, Perfetto):
 * one row per worker; tasks by name with their request, stage (a denoising step, one more when decoding),
 * layer, band of rows, flops and rate, the numbers of the tasks that it waited for, when it was ready, and
 * what the performance models expected of it at each place, in microseconds; memory in tiles and tasks in
 * flight as counters; the waits for data to arrive at the worker's memory as `transfer`; at the end what went
 * over each link, what each device did (rt/device_use.h), what came to each place in each stage, beside the
 * plan (rt/moves.h), and which workers are at which place. */
struct smalti_session;
struct smalti_trace;

/* Follows the session's tasks from here on. */
struct smalti_trace *smalti_trace_new(struct smalti_session *session, const char *path,
				      struct smalti_error *error);
/* After starpu_init: switches StarPU's profiling on. */
int smalti_trace_start(struct smalti_trace *trace, struct smalti_error *error);
/* Once: the file appears complete or not at all. */
int smalti_trace_write(struct smalti_trace *trace, struct smalti_error *error);
void smalti_trace_free(struct smalti_trace *trace);
