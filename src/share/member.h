/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "share/claims.h"
#include "share/lock.h"

/* One process among those that share a directory: its lock, its heartbeat, its claims. */
struct smalti_member {
	char *directory;
	struct smalti_heartbeat *heartbeat;
	struct smalti_lock *lock; /* for all that changes the claims, or what they lead to */
	struct smalti_claims *claims;
};

/* Makes the directory, if its parent is there, but nothing in it. The lease is the wait's; 0: SMALTI_LEASE.
 * Close the member after a failure, too. */
int smalti_member_open(struct smalti_member *member, const char *directory,
		       const struct smalti_lock_wait *wait, smalti_claim_left *left,
		       struct smalti_error *error);
/* Gives the claims back, if it can take the lock, and stops the heartbeat. One of zeros is fine. */
void smalti_member_close(struct smalti_member *member);

/* Changes the directory's time: only then network file systems show at once what others have done to it. */
int smalti_member_refresh(const char *directory, struct smalti_error *error);
