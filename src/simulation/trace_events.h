/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* The file of a trace (`--trace` of smalti generate and smalti simulate), event by event. */

enum smalti_trace_kind {
	SMALTI_TRACE_WORKER, /* what a worker is called; in front of its tasks */
	SMALTI_TRACE_TASK,
	SMALTI_TRACE_TRANSFER, /* what the task in front of it waited for */
	SMALTI_TRACE_OTHER
};

/* Numbers that are not there are NAN. Texts are the trace's. */
struct smalti_trace_event {
	enum smalti_trace_kind kind;
	const char *name; /* of the worker, or of the task; NULL: there is none */
	double worker;
	double start, duration, ready; /* microseconds */
	double flops;
	const cJSON *arguments; /* what else there is of a task */
};

/* NULL with SMALTI_EIO or SMALTI_EFORMAT; messages begin with the path. */
cJSON *smalti_trace_open(const char *path, struct smalti_error *error);

/* For cJSON_ArrayForEach(), and what each of its items is. */
const cJSON *smalti_trace_events(const cJSON *trace);
struct smalti_trace_event smalti_trace_event(const cJSON *item);
