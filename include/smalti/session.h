/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/error.h>
#include <stdbool.h>
#include <stdint.h>

/** @file
 * A session is the program's one StarPU instance: its workers, scheduling policy, memory limit,
 * scratch disk and trace. StarPU allows one per process at a time.
 *
 * Threads: one thread opens and closes it; while it is open, any thread may use it.
 *
 * It is not inherited: in a child that fork() makes while a session is open, what belongs to the session is
 * refused with SMALTI_EINVAL. Open sessions in the child, from a parent that has none.
 *
 * StarPU keeps what it measures in the environment's STARPU_PERF_MODEL_DIR, else in `.starpu` in
 * XDG_CACHE_HOME, STARPU_HOME or HOME; where that cannot be written to, in a temporary directory that goes
 * with the session. Measurements that are not complete are made again.
 */

SMALTI_BEGIN_DECLS

struct smalti_session;

/** Settings; the user's `STARPU_*` environment variables override them. */
struct smalti_session_options {
	const char *policy; /**< StarPU scheduling policy (`eager`, `lws`, `dmda`, ...), or `replay:FILE`, a
			       schedule that is replayed; NULL: `lws`, or `dmdas` with devices */
	int64_t cpus;       /**< CPU workers; 0: one per core that the process may use */
	int64_t opencl;     /**< OpenCL devices; 0: none */
	int64_t cuda;       /**< CUDA devices; -1: all that there are (the default), 0: none */
	/** With devices: have every operation that devices have a form of run on devices, and all others on
	 * CPUs, so that results repeat to the bit whatever the policy and the number of workers. The devices
	 * have to be of one kind. Without devices results repeat in any case. */
	bool reproducible;
	int64_t memory_limit; /**< bytes that the process may keep resident; 0: what the machine, a control
				   group or ulimit allows */
	int64_t
	    gpu_memory_limit; /**< bytes of tiles and weights in the memory of each device; 0: all of it */
	const char *scratch;  /**< directory for data that does not fit under the limit; NULL: none */
	const char *trace;    /**< file for the Chrome/Perfetto trace, written on close; NULL: none */
};

/** An initializer: all fields at their defaults. */
#define SMALTI_SESSION_DEFAULTS                                                                              \
	{                                                                                                    \
		.cuda = -1                                                                                   \
	}
/** Sets all fields to their defaults, for programs that are not in C. */
void smalti_session_defaults(struct smalti_session_options *options);

/** Starts StarPU. `options` NULL: the defaults. NULL with SMALTI_EINVAL (an unknown policy: the message lists
 * known ones; a bad SMALTI_MAX_ISA, SMALTI_SLOWDOWN or `STARPU_*` variable), SMALTI_ENODEV (no workers, or
 * fewer devices than asked for), SMALTI_EUNSUPPORTED (a device that does not run the kernels, or devices of
 * several kinds that are to be reproducible), SMALTI_ENOMEM (threads or memory are refused), SMALTI_EIO
 * (scratch, or no directory for measurements). The environment is changed while StarPU starts, and then as it
 * was. `STARPU_LIMIT_CPU_MEM` (in MB, without what the program itself takes) is the session's memory limit.
 */
struct smalti_session *smalti_session_open(const struct smalti_session_options *options,
					   struct smalti_error *error);

/** Waits for all tasks, writes the trace, stops StarPU and frees the session (also on failure, which
 * is that of writing the trace). */
int smalti_session_close(struct smalti_session *session, struct smalti_error *error);

SMALTI_END_DECLS
