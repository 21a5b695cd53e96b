/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_LOCK_H
#define SMALTI_STORE_LOCK_H

#include "base/error.h"

#include <stdint.h>

/* FOLDER/.lock: one holder at a time among all threads, processes and machines that share the folder (byte
 * range locks of open files, which network file systems have, too). The kernel gives a dead process's back.
 * A handle may be shared by threads. */
struct smalti_lock;

struct smalti_lock *smalti_lock_open(const char *folder, struct smalti_error *error);
void smalti_lock_close(struct smalti_lock *lock); /* NULL is fine */

/* Waits for it. *now (may be NULL): the time by the clock that stamps the folder's files, which need not be
 * this machine's, in nanoseconds since 1970. */
int smalti_lock_take(struct smalti_lock *lock, int64_t *now, struct smalti_error *error);
void smalti_lock_give(struct smalti_lock *lock);

#endif
