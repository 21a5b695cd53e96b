/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* The file of a trace (`--trace` of smalti generate and smalti simulate), event by event. */

enum smalti_trace_kind {
	SMALTI_TRACE_WORKER, /* a worker's name; precedes its tasks */
	SMALTI_TRACE_TASK,
	SMALTI_TRACE_TRANSFER, /* data that the task before it waited for */
	SMALTI_TRACE_OTHER
};

/* Missing numbers are NAN. Texts are the trace's. */
struct smalti_trace_event {
	enum smalti_trace_kind kind;
	const char *name; /* of the worker or the task; NULL: none */
	double worker;
	double start, duration, ready; /* microseconds */
	double flops;
	const cJSON *arguments; /* further values of a task */
};

/* Opens a trace. NULL with SMALTI_EIO or SMALTI_EFORMAT; messages begin with the path. */
cJSON *smalti_trace_open(const char *path, struct smalti_error *error);

/* Return the events for cJSON_ArrayForEach(), and each of its items. */
const cJSON *smalti_trace_events(const cJSON *trace);
struct smalti_trace_event smalti_trace_event(const cJSON *item);
