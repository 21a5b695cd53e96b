/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/machine.h"
#include "rt/perf_directory.h"
#include "rt/session.h"

#include <stdatomic.h>
#include <sys/types.h>

/* For session.c and session_open.c. */
struct smalti_session {
	struct smalti_perf_directory directory;
	struct smalti_machine_cpus cpus;
	int workers;
	int64_t memory_limit, memory;
	pid_t process;
	bool offloads, plain;
	int lowest_priority, highest_priority;
	struct smalti_trace *trace;
	struct smalti_codelet *codelets; /* one per op, in the order of smalti_ops[] */
	struct smalti_places *places;
	struct smalti_pool *pool;
	struct smalti_throttle throttle;
	_Atomic int64_t *busy;          /* nanoseconds of each worker in tasks */
	struct smalti_device **devices; /* of each worker; NULL without any */
	double *ended;                  /* when each worker's last task has, by smalti_now() */
	_Atomic int64_t tiles;          /* made so far */
	uint64_t sequence;              /* hash of what was inserted */
};
