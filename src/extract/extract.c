/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/extract.h"
#include "base/clock.h"
#include "extract/jobs.h"
#include "extract/shard_items.h"
#include "extract/window.h"
#include "rt/session.h"

#include <stdatomic.h>
#include <time.h>

enum { WAIT_NANOSECONDS = 200000000, LOOK_SECONDS = 2 };
static const double WAIT_SECONDS = 1; /* a wait goes on if its last report is younger */

/* One call of smalti_extract(). */
struct run {
	struct smalti_extract_parts parts;
	struct smalti_store *store;
	struct smalti_fetcher *fetcher; /* NULL: no images */
	struct smalti_extract_jobs jobs;
	struct smalti_row_writer *writer;
	struct smalti_rate reads, writes;
	struct smalti_run_record record;
	struct smalti_range within; /* this process's items */
	int64_t shard_items;
	int64_t computed; /* items whose rows went to the writer */
	smalti_extract_callback *on_progress;
	void *user;
	bool stops; /* as the callback said */
	pthread_t thread;
	atomic_bool drops; /* uncommitted rows are dropped */
	struct {
		pthread_mutex_t mutex;
		char holder[256];
		double seconds, at;
	} locked; /* the last report to the writer's thread when it waited for the directory's lock */
	struct smalti_extract_progress progress;
};

/* Lifts the limits at the end of a run: little is left to do. */
static void lift_limits(struct run *run)
{
	smalti_rate_lift(&run->reads);
	smalti_rate_lift(&run->writes);
}

static void ask(struct run *run)
{
	const enum smalti_extract_action action =
	    run->on_progress ? run->on_progress(run->user, &run->progress) : SMALTI_EXTRACT_CONTINUE;
	run->stops |= action != SMALTI_EXTRACT_CONTINUE;
	if (run->stops)
		lift_limits(run);
	if (action == SMALTI_EXTRACT_DROP)
		atomic_store(&run->drops, true);
}

/* Waits for the directory's lock, which another process holds. On the caller's thread the callback may end
 * the wait, and nothing new begins. The writer's thread has rows to commit, and waits until they are
 * dropped. */
static bool bear_lock(void *user, const char *holder, double seconds)
{
	struct run *run = user;
	if (!pthread_equal(pthread_self(), run->thread)) {
		HOLD_MUTEX(&run->locked.mutex);
		snprintf(run->locked.holder, sizeof(run->locked.holder), "%s", holder);
		run->locked.seconds = seconds;
		run->locked.at = smalti_now();
		return !atomic_load(&run->drops);
	}
	run->progress.locked_by = holder;
	run->progress.locked = seconds;
	ask(run);
	run->progress.locked_by = NULL;
	return !run->stops;
}

/* Asks the callback, and reports the writer's wait for the lock, if it waits. */
static void ask_with_writer(struct run *run)
{
	char holder[sizeof(run->locked.holder)];
	pthread_mutex_lock(&run->locked.mutex);
	memcpy(holder, run->locked.holder, sizeof(holder));
	const bool waits = smalti_now() - run->locked.at < WAIT_SECONDS;
	run->progress.locked = waits ? run->locked.seconds : 0;
	pthread_mutex_unlock(&run->locked.mutex);
	run->progress.locked_by = waits ? holder : NULL;
	ask(run);
	run->progress.locked_by = NULL;
}

/* Adds a sample to the run's record. */
static void record(struct run *run, const struct smalti_row_writer_state *written)
{
	struct smalti_run_sample sample = run->jobs.work;
	sample.items = run->progress.made;
	sample.failures = run->progress.failed;
	sample.rows = written->written;
	sample.bytes = written->bytes;
	sample.read = smalti_rate_bytes(&run->reads);
	sample.stored = smalti_rate_bytes(&run->writes);
	sample.waiting = run->fetcher ? smalti_fetcher_depth(run->fetcher) : 0;
	sample.finished = written->rows;
	sample.write = written->seconds;
	smalti_run_record_add(&run->record, sample);
}

static void report(void *user)
{
	struct run *run = user;
	struct smalti_extract_progress *progress = &run->progress;
	struct smalti_store_totals totals;
	struct smalti_row_writer_state written;
	smalti_store_totals(run->store, &run->within, &totals);
	smalti_row_writer_state(run->writer, &written);
	progress->items = run->within.end - run->within.first;
	progress->made = run->computed;
	/* some perhaps for a second time */
	progress->done = smalti_min(totals.items + run->computed - written.written, progress->items);
	progress->captions = run->jobs.work.captions;
	progress->tokens = run->jobs.work.tokens;
	progress->images = run->jobs.work.images;
	progress->read_bytes = smalti_rate_bytes(&run->reads);
	progress->written_bytes = smalti_rate_bytes(&run->writes);
	record(run, &written);
	ask_with_writer(run);
	if (atomic_load(&run->drops))
		smalti_queue_cancel(&run->jobs.queue);
}

static void on_done(void *user, struct smalti_window *window)
{
	struct run *run = user;
	run->computed += window->count;
	for (int64_t i = 0; i < window->count; i++)
		run->progress.failed += window->items[i].failure_count > 0;
	smalti_run_record_window(&run->record, window);
	smalti_row_writer_done(run->writer, window);
}

static int writer_status(struct run *run, int64_t *waiting, struct smalti_error *error)
{
	struct smalti_row_writer_state state;
	smalti_row_writer_state(run->writer, &state);
	*waiting = state.waiting;
	return smalti_pass(error, &state.error);
}

/* Waits until at most `max` windows are not written. */
static int wait_for_windows(struct run *run, int64_t max, struct smalti_error *error)
{
	int64_t waiting;
	while (writer_status(run, &waiting, error) == 0) {
		if (waiting <= max)
			return 0;
		if (!run->jobs.queue.active) {
			/* there are no tasks, and workers would look for some all the time */
			smalti_session_sleep(run->parts.session);
			smalti_row_writer_await(run->writer, max);
			smalti_session_wake(run->parts.session);
		}
		if (smalti_extract_jobs_wait(&run->jobs, error) < 0)
			return -1;
	}
	return -1;
}

static int compute(struct run *run, struct smalti_window *window, struct smalti_error *error)
{
	for (int64_t i = 0; i < window->count; i++)
		while (window->items[i].is_ordered && !smalti_fetcher_wait(run->fetcher, &window->items[i]))
			report(run);
	smalti_row_writer_add(run->writer, window);
	return smalti_extract_jobs_begin(&run->jobs, window, error);
}

/* Ends a shard before the end of its range. */
static int end_early(struct run *run, const struct smalti_range *range, int64_t at,
		     struct smalti_error *error)
{
	if (at == range->first) {
		smalti_store_abandon(run->store, range, NULL);
		return 0;
	}
	struct smalti_window *window = smalti_window_empty(range, at, error);
	if (!window)
		return -1;
	smalti_row_writer_add(run->writer, window);
	smalti_row_writer_done(run->writer, window);
	return 0;
}

static int extract_range(struct run *run, const struct smalti_range *range, const char *old,
			 struct smalti_error *error)
{
	int64_t at = range->first;
	int status = smalti_dataset_seek(run->parts.dataset, at, error);
	while (status == 0 && at < range->end && !run->stops) {
		struct smalti_window *window = smalti_window_read(
		    &run->parts, run->fetcher, range, range->end == run->within.end, at, old, error);
		if (!window)
			return -1;
		at += window->count;
		status = compute(run, window, error) || wait_for_windows(run, SMALTI_WINDOWS_MAX - 1, error)
			     ? -1
			     : 0;
	}
	return status == 0 && at < range->end ? end_early(run, range, at, error) : status;
}

/* Waits for other processes' ranges. If one dies, this process takes its range. */
static void wait_for_others(struct run *run, const char *holder)
{
	const double until = smalti_now() + LOOK_SECONDS;
	run->progress.waiting_for = holder;
	while (smalti_now() < until && !run->stops) {
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NANOSECONDS}, NULL);
		report(run);
	}
	run->progress.waiting_for = NULL;
}

/* Claims a range, if there is one, and extracts it. Returns the claim's status. */
static enum smalti_claim_status extract_next(struct run *run, bool failed, struct smalti_error *error)
{
	struct smalti_range range;
	char holder[256];
	SCOPED(free) char *old = NULL;
	struct smalti_error cause = SMALTI_NO_ERROR;
	enum smalti_claim_status claimed = smalti_store_claim(run->store, &run->within, run->shard_items,
							      &range, failed ? &old : NULL, holder, &cause);
	if (claimed == SMALTI_CLAIM_FAILED && run->stops && cause.code == SMALTI_ECANCELLED)
		return SMALTI_CLAIM_NONE; /* it was stopped while it waited for the */
	if (claimed == SMALTI_CLAIM_FAILED)
		smalti_pass(error, &cause);
	if (claimed == SMALTI_CLAIM_TAKEN && extract_range(run, &range, old, error) < 0)
		claimed = SMALTI_CLAIM_FAILED;
	if (claimed == SMALTI_CLAIM_WAIT && wait_for_windows(run, 0, error) == 0)
		wait_for_others(run, holder);
	return claimed;
}

/* Extracts range after range; `failed`: those of committed shards with failures. A lost claim is free again
 * after all rows are written. */
static int extract_all(struct run *run, bool failed, struct smalti_error *error)
{
	enum smalti_claim_status claimed = SMALTI_CLAIM_TAKEN;
	for (bool written = false; !run->stops && claimed >= 0;) {
		claimed = extract_next(run, failed, error);
		if (claimed == SMALTI_CLAIM_NONE && written)
			break;
		written = claimed == SMALTI_CLAIM_NONE;
		if (written && wait_for_windows(run, 0, error) < 0)
			return -1;
	}
	return claimed < 0 ? -1 : 0;
}

static int run_all(struct run *run, struct smalti_error *error)
{
	report(run);
	/* Earlier failures, not those of this run. */
	if (run->parts.options.retry_failed && extract_all(run, true, error) < 0)
		return -1;
	if (extract_all(run, false, error) < 0)
		return -1;
	return wait_for_windows(run, 0, error);
}

static void resolve_range(struct run *run)
{
	const struct smalti_extract_options *o = &run->parts.options;
	const int64_t count = smalti_dataset_info(run->parts.dataset)->count;
	run->within =
	    (struct smalti_range){smalti_min(o->first, count), smalti_min(o->end ? o->end : count, count)};
	if (o->parts)
		run->within = smalti_range_part(&run->within, o->part, o->parts);
}

static int open_store(struct run *run, const struct smalti_store_options *store, struct smalti_error *error)
{
	const struct smalti_extract_options *o = &run->parts.options;
	run->shard_items = smalti_shard_items(&run->parts, &run->within, run->jobs.images, error);
	if (run->shard_items < 0)
		return -1;
	run->store = smalti_store_open(o->output, store, error);
	if (run->store && o->shard_items == SMALTI_SHARD_ITEMS_AUTO)
		run->shard_items = smalti_shard_items_recorded(o->output, error);
	return run->store && run->shard_items > 0 ? 0 : -1;
}

static void tell_sizes(struct run *run)
{
	struct smalti_extract_progress *progress = &run->progress;
	const struct smalti_extract_parts *parts = &run->parts;
	progress->pack_tokens = parts->pack_tokens;
	progress->pack_images = run->jobs.images;
	progress->shard_items = run->shard_items;
	progress->memory = smalti_max(parts->room.all, 0);
	smalti_extract_room_name(parts->session, &parts->room, progress->memory_of);
}

static int open_run(struct run *run, struct smalti_error *error)
{
	const struct smalti_extract_options *o = &run->parts.options;
	const struct smalti_store_options store = {
	    .identity = run->parts.identity,
	    .lease_seconds = o->lease_seconds,
	    .rules = {smalti_extract_remedies, smalti_extract_accepts, &run->parts.options},
	    .grows = "list",
	    .before = run->parts.before,
	    .waiting = bear_lock,
	    .user = run};
	const struct smalti_input_options images = {
	    .image_size = o->image_size,
	    .fit = o->fit == SMALTI_FITTING_STRETCH ? SMALTI_FIT_STRETCH : SMALTI_FIT_COVER,
	    .stored_orientation = o->stored_orientation};
	run->progress.note = smalti_dataset_info(run->parts.dataset)->note;
	run->progress.passed_over = smalti_dataset_info(run->parts.dataset)->passed_over;
	run->progress.unused = run->parts.unused.code ? run->parts.unused.message : NULL;
	resolve_range(run);
	if (smalti_extract_jobs_open(&run->jobs, &run->parts, on_done, report, run, error) < 0 ||
	    open_store(run, &store, error) < 0)
		return -1;
	tell_sizes(run);
	if (o->images)
		run->fetcher = smalti_fetcher_open(&images, &run->reads, error);
	if (o->images && !run->fetcher)
		return -1;
	run->writer =
	    smalti_row_writer_open(run->store, &run->parts.schema, o->compression, &run->writes, error);
	if (!run->writer)
		return -1;
	smalti_run_record_open(&run->record, &run->parts, &run->progress);
	return 0;
}

/* Closes the rows first, then their shards, then the shards' directory. */
static int close_run(struct run *run, int status, struct smalti_error *error)
{
	struct smalti_row_writer_state written = {0};
	atomic_store(&run->drops, atomic_load(&run->drops) || status < 0);
	if (atomic_load(&run->drops))
		lift_limits(run);
	if (status < 0 && run->jobs.queue.cancelled)
		smalti_queue_cancel(&run->jobs.queue);
	smalti_extract_jobs_close(&run->jobs);
	if (smalti_row_writer_close(run->writer, &written, error) < 0)
		status = -1;
	smalti_fetcher_close(run->fetcher);
	run->fetcher = NULL;
	record(run, &written);
	smalti_run_record_close(&run->record, status < 0 ? "failed" : run->stops ? "stopped" : "finished");
	if (status == 0 && !run->stops)
		status =
		    smalti_store_complete(run->store, smalti_dataset_info(run->parts.dataset)->count, error);
	return status;
}

int smalti_extract(struct smalti_session *session, const struct smalti_extract_options *options,
		   smalti_extract_callback *on_progress, void *user, struct smalti_extract_result *result,
		   struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct run run = {
	    .on_progress = on_progress, .user = user, .thread = pthread_self(), .locked.at = -WAIT_SECONDS};
	struct smalti_store_totals totals = {0};
	if (smalti_check_given(session, "session", error) < 0 ||
	    smalti_check_given(options, "options of the extraction", error) < 0 ||
	    smalti_check_given(result, "result of the extraction", error) < 0 ||
	    smalti_extract_check(options, error) < 0)
		return -1;
	pthread_mutex_init(&run.locked.mutex, NULL);
	smalti_rate_open(&run.reads, options->read_limit);
	smalti_rate_open(&run.writes, options->write_limit);
	int status = smalti_extract_parts_open(&run.parts, session, options, on_progress, user, error) ||
			     open_run(&run, error) || run_all(&run, error)
			 ? -1
			 : 0;
	status = close_run(&run, status, error);
	if (run.store)
		smalti_store_totals(run.store, &run.within, &totals);
	*result = (struct smalti_extract_result){.progress = run.progress,
						 .stopped = run.stops,
						 .failures = totals.failures,
						 .log = run.record.lost};
	result->progress.done = totals.items;
	result->progress.read_bytes = smalti_rate_bytes(&run.reads);
	result->progress.written_bytes = smalti_rate_bytes(&run.writes);
	result->progress.note = result->progress.unused = NULL; /* the data set and the model owned them */
	if (result->progress.passed_over)
		snprintf(result->first_passed_over, sizeof(result->first_passed_over), "%s",
			 smalti_dataset_info(run.parts.dataset)->first_passed_over);
	smalti_store_close(run.store);
	smalti_extract_parts_close(&run.parts);
	pthread_mutex_destroy(&run.locked.mutex);
	smalti_rate_close(&run.reads);
	smalti_rate_close(&run.writes);
	return status;
}
