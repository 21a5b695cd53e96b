/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/throttle.h"
#include "smalti/session.h"

struct smalti_device;
struct smalti_trace;
struct smalti_codelet;
struct smalti_places;
struct smalti_pool;

/* A session without StarPU: each task runs when it is inserted, on the inserting thread. It shows what the
 * runtime costs: the same graphs, kernels and order, and nothing between them. */
struct smalti_session *smalti_session_open_plain(struct smalti_error *error);
bool smalti_session_plain(const struct smalti_session *session);

/* -1 with SMALTI_EINVAL in a child of the process that opened it. */
int smalti_session_check(const struct smalti_session *session, struct smalti_error *error);

/* Workers look for tasks even when there are none, and take the CPU from whoever measures something on the
 * calling thread: so put them to sleep meanwhile. No task runs until they are woken. */
void smalti_session_sleep(const struct smalti_session *session);
void smalti_session_wake(const struct smalti_session *session);

int smalti_session_workers(const struct smalti_session *session);
/* The processors that its workers may run on. */
int smalti_session_processors(const struct smalti_session *session);
int64_t smalti_session_memory_limit(const struct smalti_session *session);
/* Bytes that the process may hold: the limit, else what smalti_machine_memory() says. */
int64_t smalti_session_memory(const struct smalti_session *session);
/* Data that does not fit under the limit goes to the scratch directory. */
bool smalti_session_offloads(const struct smalti_session *session);

/* What the process holds besides tiles: code, libraries, compiled kernels, tasks in flight (measured: 60 to
 * 140 MB). */
enum { SMALTI_PROGRAM_BYTES = 160 << 20 };
/* The number of a new tile. */
int64_t smalti_session_count_tile(struct smalti_session *session);
/* Extends the sequence of insertions by a task, and tells its hash: the same whenever the same tasks were
 * inserted on the same tiles in the same order, in whatever process. */
void smalti_session_record(struct smalti_session *session, uint32_t arguments, const int64_t *numbers,
			   int count);
uint64_t smalti_session_sequence(const struct smalti_session *session);
/* Where it computes; a plain session has none. */
const struct smalti_places *smalti_session_places(const struct smalti_session *session);
int smalti_session_place_count(const struct smalti_session *session); /* a plain session's: 1 */
/* Where its tiles lie in main memory. */
struct smalti_pool *smalti_session_pool(const struct smalti_session *session);
struct smalti_throttle *smalti_session_throttle(struct smalti_session *session);
/* Seconds that a worker has been in tasks. */
void smalti_session_add_busy(struct smalti_session *session, int worker, double seconds);
/* The same for a task of a device, whose worker gives it the next one before: from `began` on, or from when
 * the task before has ended. Returns the seconds. For the worker's thread, when the task has ended. */
double smalti_session_device_ended(struct smalti_session *session, int worker, double began);
double smalti_session_busy(const struct smalti_session *session, int worker);
/* A worker's; NULL: it has none. */
struct smalti_device *smalti_session_device(const struct smalti_session *session, int worker);
/* One per op, in the order of smalti_ops[]. */
struct smalti_codelet *smalti_session_codelets(const struct smalti_session *session);
struct smalti_trace *smalti_session_trace(const struct smalti_session *session);   /* NULL: not traced */
int smalti_session_priority(const struct smalti_session *session, int64_t wanted); /* to the policy's range */
