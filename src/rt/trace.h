/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/task_group.h"

/* A record of what each worker did when, written as Chrome's trace format (chrome://tracing, Perfetto):
 * one row per worker; tasks by name with their request, stage (a denoising step, one more when decoding),
 * layer, band of rows, flops and rate, the numbers of the tasks that it waited for, when it was ready, and
 * what the performance models expected of it at each place, in microseconds; memory in tiles and tasks in
 * flight as counters; the waits for data to arrive at the worker's memory as `transfer`; at the end what went
 * over each link, what each device did (rt/device_use.h), what came to each place in each stage, beside the
 * plan (rt/moves.h), and which workers are at which place. */
struct smalti_trace;
struct starpu_task;

struct smalti_trace *smalti_trace_new(struct smalti_session *session, const char *path,
				      struct smalti_error *error);
/* After starpu_init: switches StarPU's profiling on. */
int smalti_trace_start(struct smalti_trace *trace, struct smalti_error *error);
/* Of the task that is inserted next; its number. By the inserting thread. @{ */
void smalti_trace_uses(struct smalti_trace *trace, int64_t tile, enum smalti_access access);
int64_t smalti_trace_inserts(struct smalti_trace *trace);
/* @} */
/* From a task's callback, on the worker that ran it. */
void smalti_trace_task(struct smalti_trace *trace, struct starpu_task *task);
/* What came to places for a task group whose tasks have ended. Any thread. */
void smalti_trace_moves(struct smalti_trace *trace, const struct smalti_task_group *task_group);
/* Once: the file appears complete or not at all. */
int smalti_trace_write(struct smalti_trace *trace, struct smalti_error *error);
void smalti_trace_free(struct smalti_trace *trace);
