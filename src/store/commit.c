/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "store/directory.h"
#include "store/failed.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What is to be committed: a closed, verified file, and what the journal will say of it. */
struct finished {
	struct smalti_journal_entry entry;
	char *lines; /* for failed.jsonl */
};

/* Its work, if the range is claimed; a copy, whose `part` stays the store's. */
static bool find_work(struct smalti_store *store, const struct smalti_range *range, struct smalti_work *work)
{
	bool found = false;
	pthread_mutex_lock(&store->mutex);
	for (int64_t i = store->work_count - 1; i >= 0 && !found; i--) {
		*work = store->work[i];
		found = work->open && work->range.first == range->first && work->range.end == range->end;
	}
	pthread_mutex_unlock(&store->mutex);
	return found;
}

struct smalti_shard_writer *smalti_store_begin(struct smalti_store *store, const struct smalti_range *range,
					       const struct smalti_shard_schema *schema,
					       struct smalti_error *error)
{
	struct smalti_work work;
	if (find_work(store, range, &work))
		return smalti_shard_create(work.part, schema, range->first, range->end, error);
	smalti_fail(error, SMALTI_EINVAL, "items %" PRId64 " to %" PRId64 " were not claimed", range->first,
		    range->end);
	return NULL;
}

/* Gives the claim back, after the file has been put in place or dropped. With the lock held. */
static void release(struct smalti_store *store, const struct smalti_range *range)
{
	smalti_claims_remove(store->claims, range->first, range->end);
	pthread_mutex_lock(&store->mutex);
	for (int64_t i = 0; i < store->work_count; i++)
		if (store->work[i].range.first == range->first && store->work[i].range.end == range->end)
			store->work[i].open = false;
	pthread_mutex_unlock(&store->mutex);
}

static void drop(struct smalti_store *store, const struct smalti_work *work)
{
	unlink(work->part);
	if (smalti_lock_take(store->lock, NULL, NULL))
		return; /* the claim runs out */
	release(store, &work->range);
	smalti_lock_give(store->lock);
}

void smalti_store_abandon(struct smalti_store *store, const struct smalti_range *range,
			  struct smalti_shard_writer *writer)
{
	struct smalti_work work;
	smalti_shard_discard(writer);
	if (find_work(store, range, &work))
		drop(store, &work);
}

/* Frees the writer. */
static int finish(const struct smalti_work *work, struct smalti_shard_writer *writer,
		  const struct smalti_shard_timing *timing, struct finished *finished,
		  struct smalti_error *error)
{
	struct smalti_finished_shard file;
	if (smalti_shard_finish(writer, timing, &file, error))
		return -1;
	struct smalti_journal_entry *entry = &finished->entry;
	entry->id = (struct smalti_shard_id){smalti_shard_first(file.shard), smalti_shard_end(file.shard),
					     work->replaces + 1};
	entry->replaces = work->replaces;
	entry->digest = file.digest;
	entry->bytes = file.bytes;
	struct smalti_failed failed;
	const int status = smalti_failed_of(file.shard, &failed, error);
	smalti_shard_close(file.shard);
	if (status == 0) {
		entry->failures = failed.failures;
		entry->reasons = failed.reasons;
		finished->lines = failed.lines;
	}
	return status;
}

/* Whether the journal has what this was made for: nothing yet, or the shard that it replaces. */
static bool has_place(const struct smalti_journal *journal, const struct smalti_journal_entry *entry)
{
	int64_t from;
	const int64_t count = smalti_journal_within(journal, entry->id.first, entry->id.end, &from) - from;
	if (entry->replaces < 0)
		return count == 0;
	const struct smalti_shard_id *old = &journal->entries[from].id;
	return count == 1 && old->first == entry->id.first && old->end == entry->id.end &&
	       old->remake == entry->replaces;
}

static bool is_committed(struct smalti_store *store, const struct smalti_journal_entry *entry)
{
	int64_t from;
	struct smalti_error ignored = SMALTI_NO_ERROR;
	if (smalti_store_read(store, &ignored))
		return true; /* nobody knows: then the file has to stay */
	const int64_t to = smalti_journal_within(&store->journal, entry->id.first, entry->id.end, &from);
	for (int64_t i = from; i < to; i++)
		if (store->journal.entries[i].digest == entry->digest)
			return true;
	return false;
}

static int append(struct smalti_store *store, const struct smalti_journal_entry *entry,
		  struct smalti_error *error)
{
	pthread_mutex_lock(&store->mutex);
	const int status = smalti_journal_append(&store->journal, store->directory, entry, NULL, error);
	pthread_mutex_unlock(&store->mutex);
	return status;
}

/* The file under its name, then the line. */
static int put_in_place(struct smalti_store *store, const char *part, const char *path,
			struct smalti_journal_entry *entry, struct smalti_error *error)
{
	if (rename(part, path))
		return smalti_fail_errno(error, "%s: cannot be put in place", path);
	entry->time = floor(smalti_wall_clock() * 1e3) / 1e3; /* printed short */
	if (smalti_sync_directory(store->directory, error) == 0 && append(store, entry, error) == 0)
		return 0;
	if (!is_committed(store, entry))
		unlink(path);
	return -1;
}

/* It is committed: what fails here is put right when the directory is opened or completed. */
static void follow_up(struct smalti_store *store, const struct finished *finished)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	(void)smalti_failed_add(store->directory, &finished->entry, finished->lines, &ignored);
	smalti_manifest_remove(store->directory);
	if (finished->entry.replaces < 0)
		return;
	struct smalti_shard_id old = finished->entry.id;
	old.remake = finished->entry.replaces;
	char *path = smalti_journal_path(store->directory, &old, &ignored);
	if (path)
		unlink(path);
	free(path);
}

/* With the lock held. */
static int commit_locked(struct smalti_store *store, const struct smalti_work *work,
			 struct finished *finished, bool *lost, struct smalti_error *error)
{
	if (smalti_store_read(store, error))
		return -1;
	const int holds = smalti_claims_holds(store->claims, work->range.first, work->range.end, error);
	if (holds < 0)
		return -1;
	*lost = holds == 0 || !has_place(&store->journal, &finished->entry);
	if (*lost)
		return 0;
	char *path = smalti_journal_path(store->directory, &finished->entry.id, error);
	const int status = path ? put_in_place(store, work->part, path, &finished->entry, error) : -1;
	free(path);
	if (status == 0)
		follow_up(store, finished);
	return status;
}

static int commit_finished(struct smalti_store *store, const struct smalti_work *work,
			   struct finished *finished, bool *lost, struct smalti_error *error)
{
	if (smalti_lock_take(store->lock, NULL, error)) {
		unlink(work->part);
		return -1;
	}
	const int status = commit_locked(store, work, finished, lost, error);
	unlink(work->part);
	release(store, &work->range);
	smalti_lock_give(store->lock);
	return status;
}

/* The file could not be finished: whoever has taken the claim over has removed it, or it is a failure. */
static int give_up(struct smalti_store *store, const struct smalti_work *work,
		   const struct smalti_error *cause, bool *lost, struct smalti_error *error)
{
	if (smalti_lock_take(store->lock, NULL, NULL) == 0) {
		*lost = smalti_claims_holds(store->claims, work->range.first, work->range.end, NULL) == 0;
		unlink(work->part);
		release(store, &work->range);
		smalti_lock_give(store->lock);
	}
	return *lost ? 0 : smalti_fail(error, cause->code, "%s", cause->message);
}

int smalti_store_commit(struct smalti_store *store, const struct smalti_range *range,
			struct smalti_shard_writer *writer, const struct smalti_shard_timing *timing,
			bool *lost, struct smalti_error *error)
{
	struct smalti_work work;
	*lost = false;
	if (!find_work(store, range, &work)) {
		smalti_shard_discard(writer);
		return smalti_fail(error, SMALTI_EINVAL, "items %" PRId64 " to %" PRId64 " were not claimed",
				   range->first, range->end);
	}
	struct finished finished = {0};
	struct smalti_error cause = SMALTI_NO_ERROR;
	int status = 0;
	if (finish(&work, writer, timing, &finished, &cause))
		status = give_up(store, &work, &cause, lost, error);
	else if (finished.entry.id.end == finished.entry.id.first)
		drop(store, &work);
	else
		status = commit_finished(store, &work, &finished, lost, error);
	free(finished.lines);
	return status;
}

void smalti_store_totals(struct smalti_store *store, const struct smalti_range *within,
			 struct smalti_store_totals *totals)
{
	*totals = (struct smalti_store_totals){0};
	int64_t from;
	pthread_mutex_lock(&store->mutex);
	const int64_t to = smalti_journal_within(&store->journal, within->first, within->end, &from);
	for (int64_t i = from; i < to; i++) {
		const struct smalti_journal_entry *entry = &store->journal.entries[i];
		const int64_t first = entry->id.first > within->first ? entry->id.first : within->first;
		const int64_t end = entry->id.end < within->end ? entry->id.end : within->end;
		totals->items += end - first;
		totals->failures += entry->failures;
		totals->bytes += entry->bytes;
		totals->shards++;
	}
	pthread_mutex_unlock(&store->mutex);
}
