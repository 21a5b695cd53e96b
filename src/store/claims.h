/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/process.h"
#include "store/lock.h"
#include "store/shards.h"

/* DIRECTORY/claims/FIRST-END: a range of items that a process is at work on. The file says which: host, boot,
 * process, its start, a token that no other claim has. A heartbeat renews the files' times, so that those of
 * a process that is gone, or cannot reach the directory, run out. Who calls holds the directory's lock, but
 * for smalti_claims_find(). */
struct smalti_claims;

enum { SMALTI_LEASE = 300, SMALTI_LEASE_MAX = 1000000 /* seconds */ };

struct smalti_claim {
	int64_t first, end;
	int replaces; /* the remake that is to be made anew; -1: none */
	char token[SMALTI_TOKEN + 1];
	bool mine;                  /* of these claims */
	char holder[SMALTI_HOLDER]; /* whose, for a person */
};

/* A lease of 0: only to look at those of others; nothing is removed. Without a heartbeat nothing can be
 * added. */
struct smalti_claims *smalti_claims_open(const char *directory, int64_t lease_seconds,
					 struct smalti_heartbeat *heartbeat, struct smalti_error *error);
/* Claims that are still there run out. NULL is fine. */
void smalti_claims_close(struct smalti_claims *claims);
SCOPED_RELEASE(struct smalti_claims *, smalti_claims_close)

/* Those that hold; what has run out, or whose process is gone from this machine, is removed. These claims'
 * own are in it until they are given back, even where another has them by now. `now` NULL: all that there
 * are, whether they hold or not, their ranges and no more; opens no file of theirs, which is what takes the
 * time where there are a thousand. Free *list with free(). */
int smalti_claims_list(struct smalti_claims *claims, const int64_t *now, struct smalti_claim **list,
		       int64_t *count, struct smalti_error *error);

int smalti_claims_add(struct smalti_claims *claims, int64_t first, int64_t end, int replaces,
		      struct smalti_error *error);
/* A copy of these claims' own of that range, if there is one. Any thread. */
bool smalti_claims_find(struct smalti_claims *claims, int64_t first, int64_t end, struct smalti_claim *claim);
/* Whether the range is still claimed by these claims: 1, 0, or -1. */
int smalti_claims_holds(struct smalti_claims *claims, int64_t first, int64_t end, struct smalti_error *error);
/* Gives the claim back, if it is these claims' own. */
void smalti_claims_remove(struct smalti_claims *claims, int64_t first, int64_t end);
void smalti_claims_remove_all(struct smalti_claims *claims);
