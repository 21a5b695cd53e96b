/* SPDX-License-Identifier: Apache-2.0 */
#include "share/take.h"

const struct smalti_claim *smalti_search_claim(struct smalti_search *search, int64_t item, int64_t *next)
{
	const struct smalti_claim *found = NULL;
	for (int64_t i = 0; i < search->count; i++) {
		const struct smalti_claim *claim = &search->claims[i];
		if (claim->first <= item && item < claim->end)
			found = found && !found->mine ? found : claim;
		else if (claim->first > item && claim->first < *next)
			*next = claim->first;
	}
	if (found && !found->mine && !search->others)
		search->others = found;
	return found;
}

bool smalti_search_free(struct smalti_search *search, struct smalti_claim *wanted)
{
	const int64_t last = search->within.end, items = search->items;
	for (int64_t at = search->within.first; at < last;) {
		const struct smalti_range done = search->done(search->user, at);
		if (done.first <= at) {
			at = done.end;
			continue;
		}
		int64_t end = items - at % items > last - at ? last : at + items - at % items;
		end = smalti_min(end, done.first);
		const struct smalti_claim *claim = smalti_search_claim(search, at, &end);
		if (!claim) {
			*wanted = (struct smalti_claim){.first = at, .end = end, .replaces = -1};
			return true;
		}
		at = claim->end;
	}
	return false;
}

/* Looks beside the listed claims; `now` as for smalti_claims_list(). 1: found. */
static int look(struct smalti_claims *claims, const int64_t *now, struct smalti_search *search,
		struct smalti_claim *wanted, struct smalti_error *error)
{
	search->claims = NULL;
	search->others = NULL;
	return smalti_claims_list(claims, now, &search->claims, &search->count, error)
		   ? -1
		   : search->find(search, wanted);
}

/* Looks which claims hold only when nothing is left beside all of them. */
enum smalti_claim_status smalti_claims_take(struct smalti_claims *claims, int64_t now,
					    struct smalti_search *search, struct smalti_claim *wanted,
					    char holder[SMALTI_HOLDER], struct smalti_error *error)
{
	int found = look(claims, NULL, search, wanted, error);
	if (found == 0) {
		free(search->claims);
		found = look(claims, &now, search, wanted, error);
	}
	if (found == 0 && search->others)
		snprintf(holder, SMALTI_HOLDER, "%s", search->others->holder);
	const bool wait = search->others;
	free(search->claims);
	if (found == 0)
		return wait ? SMALTI_CLAIM_WAIT : SMALTI_CLAIM_NONE;
	if (found < 0 || smalti_claims_add(claims, wanted->first, wanted->end, wanted->replaces, error))
		return SMALTI_CLAIM_FAILED;
	return SMALTI_CLAIM_TAKEN;
}
