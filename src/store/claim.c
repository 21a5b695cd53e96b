/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "store/directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is looked through for something to do. */
struct search {
	const struct smalti_journal *journal;
	struct smalti_claim *claims; /* that hold, by their first item */
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

/* The claim that covers an item, or NULL; *next: where the next one begins. */
static const struct smalti_claim *claim_at(const struct search *search, int64_t item, int64_t *next)
{
	for (int64_t i = 0; i < search->count; i++) {
		const struct smalti_claim *claim = &search->claims[i];
		if (claim->first <= item && item < claim->end)
			return claim;
		if (claim->first > item) {
			*next = claim->first < *next ? claim->first : *next;
			break;
		}
	}
	return NULL;
}

/* The first items that are neither committed nor claimed, up to a multiple of `items`. */
static bool find_free(struct search *search, const struct smalti_range *within, int64_t items,
		      struct smalti_range *range)
{
	int64_t i;
	const int64_t to = smalti_journal_within(search->journal, within->first, within->end, &i);
	for (int64_t at = within->first; at < within->end;) {
		while (i < to && search->journal->entries[i].id.end <= at)
			i++;
		const struct smalti_shard_id *committed = i < to ? &search->journal->entries[i].id : NULL;
		if (committed && committed->first <= at) {
			at = committed->end;
			continue;
		}
		int64_t end = items - at % items > within->end - at ? within->end : at + items - at % items;
		if (committed && committed->first < end)
			end = committed->first;
		const struct smalti_claim *claim = claim_at(search, at, &end);
		if (!claim) {
			*range = (struct smalti_range){at, end};
			return true;
		}
		if (!claim->mine && !search->others)
			search->others = claim;
		at = claim->end;
	}
	return false;
}

/* An entry to make anew, its index; -1: none. */
static int64_t find_failed(struct smalti_store *store, struct search *search,
			   const struct smalti_range *within)
{
	int64_t i;
	const int64_t to = smalti_journal_within(search->journal, within->first, within->end, &i);
	for (; i < to; i++) {
		const struct smalti_journal_entry *entry = &search->journal->entries[i];
		bool tried = entry->failures == 0 || entry->line > store->first_line;
		for (int64_t w = 0; w < store->work_count && !tried; w++)
			tried = store->work[w].replaces >= 0 && store->work[w].range.first == entry->id.first;
		if (tried)
			continue;
		int64_t next = entry->id.end;
		const struct smalti_claim *claim = claim_at(search, entry->id.first, &next);
		if (!claim)
			return i;
		if (!claim->mine && !search->others)
			search->others = claim;
	}
	return -1;
}

static int begin_search(struct smalti_store *store, int64_t now, struct search *search,
			struct smalti_error *error)
{
	*search = (struct search){.journal = &store->journal};
	if (smalti_store_read(store, error))
		return -1;
	return smalti_claims_list(store->claims, now, &search->claims, &search->count, error);
}

static int grow(struct smalti_store *store, struct smalti_error *error)
{
	const int64_t capacity = 2 * store->work_capacity + 16;
	struct smalti_work *work = smalti_calloc(capacity, sizeof(*work), error);
	if (!work)
		return -1;
	if (store->work_count)
		memcpy(work, store->work, (size_t)store->work_count * sizeof(*work));
	free(store->work);
	store->work = work;
	store->work_capacity = capacity;
	return 0;
}

static int add_work(struct smalti_store *store, struct smalti_work work, struct smalti_error *error)
{
	pthread_mutex_lock(&store->mutex);
	const int status = store->work_count == store->work_capacity ? grow(store, error) : 0;
	if (status == 0)
		store->work[store->work_count++] = work;
	pthread_mutex_unlock(&store->mutex);
	return status;
}

static enum smalti_claim_status take(struct smalti_store *store, const struct smalti_range *range,
				     int replaces, struct smalti_error *error)
{
	char token[SMALTI_TOKEN + 1];
	if (smalti_claims_add(store->claims, range->first, range->end, token, error))
		return SMALTI_CLAIM_FAILED;
	char *part = smalti_part_path(store->directory, range->first, range->end, token, error);
	const struct smalti_work work = {*range, replaces, part, true};
	if (part && add_work(store, work, error) == 0)
		return SMALTI_CLAIM_TAKEN;
	smalti_claims_remove(store->claims, range->first, range->end);
	free(part);
	return SMALTI_CLAIM_FAILED;
}

/* What is left, if anything, is at others' hands. */
static enum smalti_claim_status say_whose(const struct search *search, char holder[256])
{
	if (!search->others)
		return SMALTI_CLAIM_NONE;
	snprintf(holder, 256, "%s", search->others->holder);
	return SMALTI_CLAIM_WAIT;
}

enum smalti_claim_status smalti_store_claim(struct smalti_store *store, const struct smalti_range *within,
					    int64_t items, struct smalti_range *range, char holder[256],
					    struct smalti_error *error)
{
	struct search search;
	int64_t now;
	if (check(within, items, error) || smalti_lock_take(store->lock, &now, error))
		return SMALTI_CLAIM_FAILED;
	enum smalti_claim_status status = SMALTI_CLAIM_FAILED;
	if (begin_search(store, now, &search, error) == 0)
		status = find_free(&search, within, items, range) ? take(store, range, -1, error)
								  : say_whose(&search, holder);
	free(search.claims);
	smalti_lock_give(store->lock);
	return status;
}

static enum smalti_claim_status take_failed(struct smalti_store *store, struct search *search,
					    const struct smalti_range *within, struct smalti_range *range,
					    char **path, char holder[256], struct smalti_error *error)
{
	const int64_t found = find_failed(store, search, within);
	if (found < 0)
		return say_whose(search, holder);
	const struct smalti_shard_id *id = &store->journal.entries[found].id;
	*path = smalti_journal_path(store->directory, id, error);
	*range = (struct smalti_range){id->first, id->end};
	const enum smalti_claim_status status =
	    *path ? take(store, range, id->remake, error) : SMALTI_CLAIM_FAILED;
	if (status != SMALTI_CLAIM_TAKEN) {
		free(*path);
		*path = NULL;
	}
	return status;
}

enum smalti_claim_status smalti_store_claim_failed(struct smalti_store *store,
						   const struct smalti_range *within,
						   struct smalti_range *range, char **path, char holder[256],
						   struct smalti_error *error)
{
	struct search search;
	int64_t now;
	if (check(within, 1, error) || smalti_lock_take(store->lock, &now, error))
		return SMALTI_CLAIM_FAILED;
	enum smalti_claim_status status = SMALTI_CLAIM_FAILED;
	if (begin_search(store, now, &search, error) == 0)
		status = take_failed(store, &search, within, range, path, holder, error);
	free(search.claims);
	smalti_lock_give(store->lock);
	return status;
}
