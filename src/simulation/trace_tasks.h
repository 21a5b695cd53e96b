/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* What a trace of a real run (`smalti generate --trace`) tells of its tasks. */
struct smalti_traced_task {
	const char *name; /* an operation's, or of several together */
	uint32_t key;     /* tasks of one name with the same key are alike */
	int worker;
	double seconds;
	double late;         /* seconds from when it and its worker were ready to when it began */
	double flops, bytes; /* that it computed, and moved */
};

enum { SMALTI_TRACE_WORKERS = 256, SMALTI_TRACE_WORKER_NAME = 96 };

/* What it tells of where they ran; places are memories with workers of their own, main memory being the
 * first. */
struct smalti_traced_machine {
	int workers;
	char worker[SMALTI_TRACE_WORKERS][SMALTI_TRACE_WORKER_NAME]; /* as StarPU calls it */
	double ended[SMALTI_TRACE_WORKERS]; /* its last task so far, in microseconds; 0: none */
	const cJSON *memories;              /* bytes of each place */
	const cJSON *links;                 /* from, to, gbs, us */
};

/* Whether a worker of that name is a device's. */
bool smalti_traced_device(const char *worker);

struct smalti_trace_reader {
	int (*on_task)(void *user, const struct smalti_traced_machine *machine,
		       const struct smalti_traced_task *task, struct smalti_error *error);
	/* Behind the tasks. NULL: not wanted. */
	int (*on_machine)(void *user, const struct smalti_traced_machine *machine,
			  struct smalti_error *error);
	void *user;
};

/* Each of the files, which have commas between. SMALTI_EIO, SMALTI_EFORMAT. */
int smalti_traces_read(const char *files, const struct smalti_trace_reader *reader,
		       struct smalti_error *error);
