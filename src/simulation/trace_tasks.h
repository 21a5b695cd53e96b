/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* A task in the trace of a real run (`smalti generate --trace`). */
struct smalti_traced_task {
	const char *name; /* an operation's, or that of several together */
	uint32_t key;     /* tasks of one name with the same key are alike */
	int worker;
	double seconds;
	double late;         /* seconds from when it and its worker were ready to when it began */
	double flops, bytes; /* computed, and moved */
};

enum { SMALTI_TRACE_WORKERS = 256, SMALTI_TRACE_WORKER_NAME = 96 };

/* The machine of a process's trace. Places are memories with workers of their own; main memory is the first.
 */
struct smalti_traced_machine {
	int workers;
	char worker[SMALTI_TRACE_WORKERS][SMALTI_TRACE_WORKER_NAME]; /* StarPU's name */
	double ended[SMALTI_TRACE_WORKERS]; /* the end of its last task so far, in microseconds; 0: none */
	const cJSON *memories;              /* bytes of each place */
	const cJSON *links;                 /* from, to, gbs, us */
	const cJSON *ranks;                 /* count; gbs, us between two; NULL: one process */
};

/* Tells whether a worker of that name is a device's. */
bool smalti_traced_device(const char *worker);

struct smalti_trace_reader {
	int (*on_task)(void *user, const struct smalti_traced_machine *machine,
		       const struct smalti_traced_task *task, struct smalti_error *error);
	/* Called after the tasks. NULL: not wanted. */
	int (*on_machine)(void *user, const struct smalti_traced_machine *machine,
			  struct smalti_error *error);
	void *user;
};

/* Reads each of the files, which are separated by commas. SMALTI_EIO, SMALTI_EFORMAT. */
int smalti_traces_read(const char *files, const struct smalti_trace_reader *reader,
		       struct smalti_error *error);
