/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "share/claims.h"
#include "share/range.h"

/* A search for items that a process can claim. */
struct smalti_search {
	/* Fills first, end and replaces of what is to be claimed; false: there is nothing. Such as
	 * smalti_search_free(). */
	bool (*find)(struct smalti_search *search, struct smalti_claim *wanted);
	struct smalti_range within;
	int64_t items; /* a range lies between two multiples of it */
	/* Returns the first range of items that are done that ends behind `at`; without one, a range behind
	 * all items. */
	struct smalti_range (*done)(const void *user, int64_t at);
	void *user;
	/* The claims that `find` leaves alone, and the first of them that is in its way and not ours. For
	 * `find`, filled by smalti_claims_take(). */
	struct smalti_claim *claims;
	int64_t count;
	const struct smalti_claim *others;
};

/* Returns the claim that covers an item, another's rather than our own, or NULL; *next becomes where the next
 * one begins, if that is less. */
const struct smalti_claim *smalti_search_claim(struct smalti_search *search, int64_t item, int64_t *next);
/* Finds the first items that are neither done nor claimed, up to a multiple of `items`. */
bool smalti_search_free(struct smalti_search *search, struct smalti_claim *wanted);

enum smalti_claim_status {
	SMALTI_CLAIM_FAILED = -1,
	SMALTI_CLAIM_NONE = 0,  /* all of it is done, or claimed by this process already */
	SMALTI_CLAIM_TAKEN = 1, /* it is this process's to do */
	SMALTI_CLAIM_WAIT = 2,  /* what is left is claimed by others: ask again later; `holder` says whom */
};

/* Claims what is found. The lock is held. */
enum smalti_claim_status smalti_claims_take(struct smalti_claims *claims, int64_t now,
					    struct smalti_search *search, struct smalti_claim *wanted,
					    char holder[SMALTI_HOLDER], struct smalti_error *error);
