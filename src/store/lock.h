/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A thread that renews the times of open files, four times in a lease: others see by them that this process
 * is there and reaches the directory. */
struct smalti_heartbeat;

struct smalti_heartbeat *smalti_heartbeat_start(int64_t lease_seconds, struct smalti_error *error);
/* Before it, all files were removed. NULL is fine. */
void smalti_heartbeat_stop(struct smalti_heartbeat *heartbeat);
SCOPED_RELEASE(struct smalti_heartbeat *, smalti_heartbeat_stop)

int smalti_heartbeat_add(struct smalti_heartbeat *heartbeat, int file, struct smalti_error *error);
/* From its return on the file is not touched any more. One that was not added is fine. */
void smalti_heartbeat_remove(struct smalti_heartbeat *heartbeat, int file);

/* DIRECTORY/.lock: one holder at a time among all threads, processes and machines that share the directory
 * (byte range locks of open files, which network file systems have, too). The kernel gives a dead process's
 * back. The file says who holds it, and its holder's heartbeat renews its time. A handle may be shared by
 * threads.
 */
struct smalti_lock;

/* What becomes of a wait for another's lock. */
struct smalti_lock_wait {
	/* Some times a second, on the thread that waits: who holds it, for a person, and for how long it was
	 * waited for. Whether to go on; NULL: yes. */
	bool (*go_on)(void *user, const char *holder, double seconds);
	void *user;
	int64_t
	    lease_seconds; /* a holder without a sign of life for SMALTI_LOCK_LEASES of them is given up */
};

/* A holder may be asleep for longer than its lease, which costs it its claims and nobody else anything; to
 * wait no longer costs those who wait their work. */
enum { SMALTI_LOCK_LEASES = 3 };

struct smalti_lock *smalti_lock_open(const char *directory, const struct smalti_lock_wait *wait,
				     struct smalti_heartbeat *heartbeat, struct smalti_error *error);
void smalti_lock_close(struct smalti_lock *lock); /* NULL is fine */
SCOPED_RELEASE(struct smalti_lock *, smalti_lock_close)

/* Waits for it. *now (may be NULL): the time by the clock that stamps the directory's files, which need not
 * be this machine's, in nanoseconds since 1970. SMALTI_ECANCELLED where the wait was ended, SMALTI_EIO where
 * its holder was given up; after that nothing waits for the lock any more, but takes it if it is free. */
int smalti_lock_take(struct smalti_lock *lock, int64_t *now, struct smalti_error *error);
void smalti_lock_give(struct smalti_lock *lock);
/* Whether anybody holds that of a directory; false where that cannot be known. */
bool smalti_lock_is_held(const char *directory);
