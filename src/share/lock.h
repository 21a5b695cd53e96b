/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A thread that renews the times of open files, four times in a lease: others see by them that this process
 * is there and reaches the directory. */
struct smalti_heartbeat;

struct smalti_heartbeat *smalti_heartbeat_start(int64_t lease_seconds, struct smalti_error *error);
/* Stops the thread. All files were removed before. NULL is fine. */
void smalti_heartbeat_stop(struct smalti_heartbeat *heartbeat);
SCOPED_RELEASE(struct smalti_heartbeat *, smalti_heartbeat_stop)

int smalti_heartbeat_add(struct smalti_heartbeat *heartbeat, int file, struct smalti_error *error);
/* Removes a file, which is not touched any more from its return on. One that was not added is fine. */
void smalti_heartbeat_remove(struct smalti_heartbeat *heartbeat, int file);

/* DIRECTORY/.lock: one holder at a time among all threads, processes and machines that share the directory
 * (byte range locks of open files, which network file systems have, too). The kernel gives back the lock of a
 * dead process. The file says who holds the lock, and the holder's heartbeat renews its time. Threads may
 * share a handle. */
struct smalti_lock;

/* Rules of a wait for another's lock. */
struct smalti_lock_wait {
	/* Told some times a second, on the thread that waits, who holds it, for a person, and how long it was
	 * waited for. Returns whether to go on; NULL: yes. */
	bool (*go_on)(void *user, const char *holder, double seconds);
	void *user;
	int64_t
	    lease_seconds; /* a holder without a sign of life for SMALTI_LOCK_LEASES of them is given up */
};

/* A holder that sleeps for longer than its lease loses its claims, which costs the others nothing. A process
 * that stops waiting loses its work. */
enum { SMALTI_LOCK_LEASES = 3 };

struct smalti_lock *smalti_lock_open(const char *directory, const struct smalti_lock_wait *wait,
				     struct smalti_heartbeat *heartbeat, struct smalti_error *error);
void smalti_lock_close(struct smalti_lock *lock); /* NULL is fine */
SCOPED_RELEASE(struct smalti_lock *, smalti_lock_close)

/* Waits for the lock. *now (may be NULL): the time by the clock that stamps the directory's files, which need
 * not be this machine's, in nanoseconds since 1970. SMALTI_ECANCELLED where the wait was ended, SMALTI_EIO
 * where the holder was given up; after that nothing waits for the lock any more, but takes it if it is
 * free. */
int smalti_lock_acquire(struct smalti_lock *lock, int64_t *now, struct smalti_error *error);
void smalti_lock_release(struct smalti_lock *lock);
/* Tells whether anybody holds a directory's lock; false where that cannot be known. */
bool smalti_lock_is_held(const char *directory);
