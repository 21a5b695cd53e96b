/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/task_group.h"

/* A record of what each worker did when, written as Chrome's trace format (chrome://tracing, Perfetto):
 * one row per worker; tasks by name with their request, stage (a denoising step, one more when decoding),
 * layer, band of rows, flops and rate; memory in tiles and tasks in flight as counters; the waits for data to
 * arrive at the worker's memory as `transfer`; at the end what went over each link, and of each device the
 * share of the session that it was busy, bytes moved and the peak of its memory in use. */
struct smalti_trace;
struct starpu_task;

struct smalti_trace *smalti_trace_new(struct smalti_session *session, const char *path,
				      struct smalti_error *error);
/* After starpu_init: switches StarPU's profiling on. */
int smalti_trace_start(struct smalti_trace *trace, struct smalti_error *error);
/* From a task's callback, on the worker that ran it. */
void smalti_trace_task(struct smalti_trace *trace, const struct starpu_task *task, const char *request,
		       const struct smalti_position *position);
/* Once: the file appears complete or not at all. */
int smalti_trace_write(struct smalti_trace *trace, struct smalti_error *error);
void smalti_trace_free(struct smalti_trace *trace);
