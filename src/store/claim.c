/* SPDX-License-Identifier: Apache-2.0 */
#include "store/directory.h"
#include "store/store.h"

/* A search for items to work on. */
struct search {
	struct smalti_shards *shards;
	const struct smalti_range *within;
	struct smalti_claim *claims; /* not to be taken */
	int64_t count;
	const struct smalti_claim *others; /* the first that is in the way and not ours */
};

static int check(const struct smalti_range *within, int64_t items, struct smalti_error *error)
{
	if (within->first < 0 || within->end < within->first || within->end > SMALTI_ITEMS_MAX || items < 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "items %" PRId64 " to %" PRId64 " in shards of %" PRId64
				   ": there can be no such shards",
				   within->first, within->end, items);
	return 0;
}

/* Returns the claim that covers an item, another's rather than our own, or NULL; *next becomes where the next
 * one begins. */
static const struct smalti_claim *claim_at(struct search *search, int64_t item, int64_t *next)
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

/* Finds the first items that are neither committed nor claimed, up to a multiple of `items`. */
static bool find_free(struct search *search, int64_t items, struct smalti_range *range)
{
	int64_t i;
	const int64_t last = search->within->end;
	const int64_t to = smalti_shards_within(search->shards, search->within->first, last, &i);
	for (int64_t at = search->within->first; at < last;) {
		while (i < to && search->shards->entries[i].id.end <= at)
			i++;
		const struct smalti_shard_id *committed = i < to ? &search->shards->entries[i].id : NULL;
		if (committed && committed->first <= at) {
			at = committed->end;
			continue;
		}
		int64_t end = items - at % items > last - at ? last : at + items - at % items;
		if (committed && committed->first < end)
			end = committed->first;
		const struct smalti_claim *claim = claim_at(search, at, &end);
		if (!claim) {
			*range = (struct smalti_range){at, end};
			return true;
		}
		at = claim->end;
	}
	return false;
}

/* Finds the first shard to make anew. */
static bool find_failed(struct search *search, struct smalti_range *range, int *replaces)
{
	int64_t i;
	const int64_t to =
	    smalti_shards_within(search->shards, search->within->first, search->within->end, &i);
	for (; i < to; i++) {
		struct smalti_shard_entry *entry = &search->shards->entries[i];
		int64_t next = entry->id.end;
		if (entry->failures == 0 || entry->tried || claim_at(search, entry->id.first, &next))
			continue;
		entry->tried = true;
		*range = (struct smalti_range){entry->id.first, entry->id.end};
		*replaces = entry->id.remake;
		return true;
	}
	return false;
}

/* Returns whether others have claimed what is left, and who. */
static enum smalti_claim_status say_whose(const struct search *search, char holder[256])
{
	if (!search->others)
		return SMALTI_CLAIM_NONE;
	snprintf(holder, 256, "%s", search->others->holder);
	return SMALTI_CLAIM_WAIT;
}

static void forget_claims(struct search *search)
{
	free(search->claims);
	search->claims = NULL;
	search->others = NULL;
}

/* Finds, with `items` 0, a shard to make anew. */
static bool find(struct search *search, int64_t items, struct smalti_range *range, int *replaces)
{
	*replaces = -1;
	return items ? find_free(search, items, range) : find_failed(search, range, replaces);
}

/* Claims items, or with `items` 0 a shard to make anew, whose remake goes to *replaces. The lock is held.
 * Which claims hold is only looked at when nothing is left beside all of them. */
static enum smalti_claim_status claim(struct smalti_store *store, struct search *search, int64_t now,
				      int64_t items, struct smalti_range *range, int *replaces,
				      char holder[256], struct smalti_error *error)
{
	if (smalti_store_read(store, error) ||
	    smalti_claims_list(store->claims, NULL, &search->claims, &search->count, error))
		return SMALTI_CLAIM_FAILED;
	if (!find(search, items, range, replaces)) {
		forget_claims(search);
		if (smalti_claims_list(store->claims, &now, &search->claims, &search->count, error))
			return SMALTI_CLAIM_FAILED;
		if (!find(search, items, range, replaces))
			return say_whose(search, holder);
	}
	return smalti_claims_add(store->claims, range->first, range->end, *replaces, error)
		   ? SMALTI_CLAIM_FAILED
		   : SMALTI_CLAIM_TAKEN;
}

enum smalti_claim_status smalti_store_claim(struct smalti_store *store, const struct smalti_range *within,
					    int64_t items, struct smalti_range *range, char **old,
					    char holder[256], struct smalti_error *error)
{
	struct search search = {.shards = &store->shards, .within = within};
	int64_t now;
	int replaces;
	if (check(within, items, error) || smalti_lock_acquire(store->lock, &now, error))
		return SMALTI_CLAIM_FAILED;
	const enum smalti_claim_status status =
	    claim(store, &search, now, old ? 0 : items, range, &replaces, holder, error);
	forget_claims(&search);
	smalti_lock_release(store->lock);
	if (status != SMALTI_CLAIM_TAKEN || !old)
		return status;
	*old = smalti_shard_path(store->directory,
				 &(struct smalti_shard_id){range->first, range->end, replaces}, error);
	if (*old)
		return SMALTI_CLAIM_TAKEN;
	smalti_store_abandon(store, range, NULL);
	return SMALTI_CLAIM_FAILED;
}

/* Returns floor(part × length / parts), without the product. */
static int64_t cut(int64_t length, int64_t part, int64_t parts)
{
	const int64_t rest = length % parts;
	return length / parts * part + (int64_t)((__int128)rest * part / parts);
}

struct smalti_range smalti_range_part(const struct smalti_range *range, int64_t part, int64_t parts)
{
	const int64_t length = range->end - range->first;
	return (struct smalti_range){range->first + cut(length, part, parts),
				     range->first + cut(length, part + 1, parts)};
}
