/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/process.h"
#include "share/lock.h"

/* DIRECTORY/claims/FIRST-END: a range of items that a process works on. The file says which: host, boot,
 * process, its start, a token that no other claim has. A heartbeat renews the files' times, so that the
 * claims of a process that is gone, or cannot reach the directory, run out. The caller holds the directory's
 * lock, but for smalti_claims_find(). */
struct smalti_claims;

enum { SMALTI_LEASE = 300, SMALTI_LEASE_MAX = 1000000 /* seconds */, SMALTI_TOKEN = 16 };

struct smalti_claim {
	int64_t first, end;
	int replaces; /* the remake that is to be made anew; -1: none */
	char token[SMALTI_TOKEN + 1];
	bool mine;                  /* of these claims */
	char holder[SMALTI_HOLDER]; /* whose, for a person */
};

/* Removes from the directory what the holder of a claim that has run out has left. */
typedef void smalti_claim_left(const char *directory, const struct smalti_claim *claim);

/* With a lease of 0 it only looks at those of others and removes nothing. Without a heartbeat nothing can be
 * added. `left` may be NULL. */
struct smalti_claims *smalti_claims_open(const char *directory, int64_t lease_seconds,
					 struct smalti_heartbeat *heartbeat, smalti_claim_left *left,
					 struct smalti_error *error);
/* Lets claims that are still there run out. NULL is fine. */
void smalti_claims_close(struct smalti_claims *claims);
SCOPED_RELEASE(struct smalti_claims *, smalti_claims_close)

/* Lists the claims that hold; removes those that have run out, or whose process is gone from this machine.
 * Our own are listed until they are given back, even where another has them by now. `now` NULL: lists only
 * the ranges of all, whether they hold or not, and opens none of their files, which takes the time where
 * there are a thousand. Free *list with free(). */
int smalti_claims_list(struct smalti_claims *claims, const int64_t *now, struct smalti_claim **list,
		       int64_t *count, struct smalti_error *error);

int smalti_claims_add(struct smalti_claims *claims, int64_t first, int64_t end, int replaces,
		      struct smalti_error *error);
/* Copies our own claim of that range, if there is one. Any thread may call it. */
bool smalti_claims_find(struct smalti_claims *claims, int64_t first, int64_t end, struct smalti_claim *claim);
/* Returns whether these claims still have the range: 1, 0, or -1. */
int smalti_claims_holds(struct smalti_claims *claims, int64_t first, int64_t end, struct smalti_error *error);
/* Gives the claim back, if it is these claims' own. */
void smalti_claims_remove(struct smalti_claims *claims, int64_t first, int64_t end);
bool smalti_claims_any(const struct smalti_claims *claims);
void smalti_claims_remove_all(struct smalti_claims *claims);
