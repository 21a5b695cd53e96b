/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "store/directory.h"

static char *part_of(const struct smalti_store *store, const struct smalti_claim *claim,
		     struct smalti_error *error)
{
	return smalti_part_path(store->member.directory, claim->first, claim->end, claim->token, error);
}

void smalti_part_remove(const char *directory, const struct smalti_claim *claim)
{
	SCOPED(free)
	char *part = smalti_part_path(directory, claim->first, claim->end, claim->token, NULL);
	if (part)
		unlink(part);
}

static int find_claim(struct smalti_store *store, const struct smalti_range *range,
		      struct smalti_claim *claim, struct smalti_error *error)
{
	if (smalti_claims_find(store->member.claims, range->first, range->end, claim))
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "items %" PRId64 " to %" PRId64 " were not claimed",
			   range->first, range->end);
}

struct smalti_shard_writer *smalti_store_begin(struct smalti_store *store, const struct smalti_range *range,
					       const struct smalti_shard_schema *schema,
					       struct smalti_error *error)
{
	struct smalti_claim claim;
	SCOPED(free)
	char *part = find_claim(store, range, &claim, error) == 0 ? part_of(store, &claim, error) : NULL;
	return part ? smalti_shard_create(part, schema, range->first, range->end, error) : NULL;
}

/* Tells whether the shard's place is free, or holds the one that it replaces. */
static bool has_place(const struct smalti_shards *shards, const struct smalti_shard_id *id)
{
	int64_t from;
	if (id->remake == 0)
		return smalti_shards_within(shards, id->first, id->end, &from) == from;
	return smalti_shards_find(shards, &(struct smalti_shard_id){id->first, id->end, id->remake - 1});
}

static int put_in_place(const struct smalti_store *store, const char *part, const struct smalti_shard_id *id,
			struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_shard_path(store->member.directory, id, error);
	int status = -1;
	if (path && rename(part, path))
		smalti_fail_errno(error, "%s: cannot be put in place", path);
	else if (path)
		status = smalti_sync_directory(store->member.directory, error);
	if (path && status)
		unlink(path);
	return status;
}

/* Follows a commit: what fails here is put right when the directory is opened or completed. */
static void follow_up(struct smalti_store *store, const struct smalti_shard_id *id,
		      struct smalti_shard *shard)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	const struct smalti_shard_id old = {id->first, id->end, id->remake - 1};
	SCOPED(free)
	char *path = id->remake ? smalti_shard_path(store->member.directory, &old, &ignored) : NULL;
	if (path)
		unlink(path);
	smalti_manifest_remove(store->member.directory);
	if (smalti_store_read(store, &ignored) == 0 && id->remake)
		(void)smalti_failed_rebuild(store->member.directory, &store->shards, &ignored);
	else if (!id->remake)
		(void)smalti_failed_append(store->member.directory, shard, &ignored);
}

/* The lock and the claim are held. */
static int commit_locked(struct smalti_store *store, const struct smalti_claim *claim, const char *part,
			 struct smalti_shard *shard, bool *lost, struct smalti_error *error)
{
	const struct smalti_shard_id id = {smalti_shard_info(shard)->first, smalti_shard_info(shard)->end,
					   claim->replaces + 1};
	if (smalti_store_read(store, error))
		return -1;
	*lost = !has_place(&store->shards, &id);
	if (*lost)
		return 0;
	if (put_in_place(store, part, &id, error))
		return -1;
	follow_up(store, &id, shard);
	return 0;
}

/* Puts the shard in place and gives the claim back. Without a shard, or where the claim was lost, what was
 * written is dropped. If the lock cannot be taken, the claim runs out. */
static int end_work(struct smalti_store *store, const struct smalti_claim *claim, struct smalti_shard *shard,
		    bool *lost, struct smalti_error *error)
{
	SCOPED(free) char *part = part_of(store, claim, error);
	int status = part ? smalti_lock_acquire(store->member.lock, NULL, error) : -1;
	if (status == 0) {
		const int holds = smalti_claims_holds(store->member.claims, claim->first, claim->end, error);
		status = holds < 0 ? -1 : 0;
		*lost = holds == 0;
		if (holds > 0 && shard && smalti_shard_info(shard)->end > smalti_shard_info(shard)->first)
			status = commit_locked(store, claim, part, shard, lost, error);
		unlink(part);
		smalti_claims_remove(store->member.claims, claim->first, claim->end);
		smalti_lock_release(store->member.lock);
	} else if (part) {
		unlink(part);
	}
	return status;
}

void smalti_store_abandon(struct smalti_store *store, const struct smalti_range *range,
			  struct smalti_shard_writer *writer)
{
	struct smalti_claim claim;
	struct smalti_error ignored = SMALTI_NO_ERROR;
	bool lost;
	smalti_shard_discard(writer);
	if (find_claim(store, range, &claim, &ignored) == 0)
		(void)end_work(store, &claim, NULL, &lost, &ignored);
}

/* Fails for a file that could not be finished, unless the process that took over the claim has removed it. */
int smalti_store_commit(struct smalti_store *store, const struct smalti_range *range,
			struct smalti_shard_writer *writer, const struct smalti_shard_timing *timing,
			bool *lost, struct smalti_error *error)
{
	struct smalti_claim claim;
	struct smalti_error cause = SMALTI_NO_ERROR, ignored = SMALTI_NO_ERROR;
	*lost = false;
	if (find_claim(store, range, &claim, error)) {
		smalti_shard_discard(writer);
		return -1;
	}
	SCOPED(smalti_shard_close) struct smalti_shard *shard = smalti_shard_finish(writer, timing, &cause);
	const int status = end_work(store, &claim, shard, lost, shard ? error : &ignored);
	return shard || *lost ? status : smalti_pass(error, &cause);
}

void smalti_store_totals(struct smalti_store *store, const struct smalti_range *within,
			 struct smalti_store_totals *totals)
{
	HOLD_MUTEX(&store->mutex);
	*totals = smalti_shards_totals(&store->shards, within->first, within->end);
}
