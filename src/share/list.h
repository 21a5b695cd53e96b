/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "share/identity.h"
#include "share/lock.h"
#include "share/take.h"

/* A list of items for the processes that make them: any number, on any machines that share a directory, which
 * holds what they tell each other:
 *
 *   share.json         what is made and how, fixed by the first process
 *   claims/FIRST-END   ranges of items that a process works on
 *   done.json          ranges of items that were worked on, those with failures for themselves
 *
 * An item has failed for all processes until one opens the list while no other works on it. */
struct smalti_shared_list;

struct smalti_shared_list_options {
	const cJSON *identity; /* what has to be the same in all processes */
	struct smalti_identity_rules rules;
	int64_t items; /* in the list */
	int64_t step;  /* a claimed range lies between two multiples of it */
	struct smalti_lock_wait wait;
};

/* Makes the directory or joins those that work there; the directory's parent must exist. */
struct smalti_shared_list *smalti_shared_list_open(const char *directory,
						   const struct smalti_shared_list_options *options,
						   struct smalti_error *error);
/* Gives the claims back. NULL is fine. */
void smalti_shared_list_close(struct smalti_shared_list *list);
/* Tells whether no other process worked on the list when it was opened. */
bool smalti_shared_list_is_first(const struct smalti_shared_list *list);

/* Claims a range; `holder` is filled where others have all that is left. */
enum smalti_claim_status smalti_shared_list_claim(struct smalti_shared_list *list, struct smalti_range *range,
						  char holder[SMALTI_HOLDER], struct smalti_error *error);
/* Calls `act` under the lock, unless the claim was lost meanwhile: then *lost is true, and what was made is
 * to be dropped. So what `act` puts in place was put there by no other process. */
int smalti_shared_list_act(struct smalti_shared_list *list, const struct smalti_range *range,
			   int (*act)(void *user, struct smalti_error *error), void *user, bool *lost,
			   struct smalti_error *error);
/* Records a claimed range as done, with failures or without, and gives the claim back. That of a lost claim
 * is not recorded, and not an error. */
int smalti_shared_list_finish(struct smalti_shared_list *list, const struct smalti_range *range, bool failed,
			      struct smalti_error *error);
/* Gives a claim back, if the lock can be taken: others do what is left. */
void smalti_shared_list_abandon(struct smalti_shared_list *list, const struct smalti_range *range);
/* Returns how many items are done, by any process, as last read by one of the functions above. */
int64_t smalti_shared_list_done(const struct smalti_shared_list *list);
