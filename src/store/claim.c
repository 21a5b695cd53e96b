/* SPDX-License-Identifier: Apache-2.0 */
#include "store/directory.h"
#include "store/store.h"

static int check(const struct smalti_range *within, int64_t items, struct smalti_error *error)
{
	if (within->first < 0 || within->end < within->first || within->end > SMALTI_ITEMS_MAX || items < 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "items %" PRId64 " to %" PRId64 " in shards of %" PRId64
				   ": there can be no such shards",
				   within->first, within->end, items);
	return 0;
}

static struct smalti_range next_committed(const void *user, int64_t at)
{
	const struct smalti_shards *shards = user;
	int64_t i;
	smalti_shards_within(shards, at, at + 1, &i);
	return i < shards->count
		   ? (struct smalti_range){shards->entries[i].id.first, shards->entries[i].id.end}
		   : (struct smalti_range){INT64_MAX, INT64_MAX};
}

/* Finds the first shard to make anew. */
static bool find_failed(struct smalti_search *search, struct smalti_claim *wanted)
{
	const struct smalti_shards *shards = search->user;
	int64_t i;
	const int64_t to = smalti_shards_within(shards, search->within.first, search->within.end, &i);
	for (; i < to; i++) {
		struct smalti_shard_entry *entry = &shards->entries[i];
		int64_t next = entry->id.end;
		if (entry->failures == 0 || entry->tried ||
		    smalti_search_claim(search, entry->id.first, &next))
			continue;
		entry->tried = true;
		*wanted = (struct smalti_claim){
		    .first = entry->id.first, .end = entry->id.end, .replaces = entry->id.remake};
		return true;
	}
	return false;
}

enum smalti_claim_status smalti_store_claim(struct smalti_store *store, const struct smalti_range *within,
					    int64_t items, struct smalti_range *range, char **old,
					    char holder[256], struct smalti_error *error)
{
	struct smalti_search search = {.find = old ? find_failed : smalti_search_free,
				       .within = *within,
				       .items = items,
				       .done = next_committed,
				       .user = &store->shards};
	struct smalti_claim claim;
	int64_t now;
	if (check(within, items, error) || smalti_lock_acquire(store->member.lock, &now, error))
		return SMALTI_CLAIM_FAILED;
	enum smalti_claim_status status = SMALTI_CLAIM_FAILED;
	if (smalti_store_read(store, error) == 0)
		status = smalti_claims_take(store->member.claims, now, &search, &claim, holder, error);
	smalti_lock_release(store->member.lock);
	if (status != SMALTI_CLAIM_TAKEN)
		return status;
	*range = (struct smalti_range){claim.first, claim.end};
	if (!old)
		return SMALTI_CLAIM_TAKEN;
	*old = smalti_shard_path(store->member.directory,
				 &(struct smalti_shard_id){claim.first, claim.end, claim.replaces}, error);
	if (*old)
		return SMALTI_CLAIM_TAKEN;
	smalti_store_abandon(store, range, NULL);
	return SMALTI_CLAIM_FAILED;
}
