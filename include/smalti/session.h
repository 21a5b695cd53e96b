/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SESSION_H
#define SMALTI_SESSION_H

#include <smalti/error.h>
#include <stdint.h>

/** @file
 * A session is the program's one StarPU instance: its workers, scheduling policy, memory limit,
 * scratch disk and trace. StarPU allows one per process at a time.
 *
 * Threads: one opens and closes it; while it is open, any may use it.
 */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct smalti_session;

/** What can be chosen; the user's `STARPU_*` environment variables win over it. */
struct smalti_session_options {
	const char *policy;   /**< StarPU scheduling policy (`eager`, `lws`, `dmda`, ...); NULL: `lws` */
	int64_t cpus;         /**< CPU workers; 0: one per core */
	int64_t memory_limit; /**< bytes that the process may keep resident; 0: no limit */
	const char *scratch;  /**< folder for data that does not fit under the limit; NULL: none */
	const char *trace;    /**< where the Chrome/Perfetto trace is written on close; NULL: none */
};

/** All fields at their defaults. */
void smalti_session_defaults(struct smalti_session_options *options);

/** Starts StarPU. `options` NULL: the defaults. NULL with SMALTI_EINVAL (an unknown policy: the message lists
 * the known ones; no workers; a bad SMALTI_MAX_ISA), SMALTI_ENODEV, SMALTI_EIO (scratch). */
struct smalti_session *smalti_session_open(const struct smalti_session_options *options,
					   struct smalti_error *error);

/** Waits for all tasks, writes the trace, stops StarPU and frees the session (also on failure, which
 * is that of writing the trace). */
int smalti_session_close(struct smalti_session *session, struct smalti_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
