/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "export/export.h"
#include "share/list.h"

#include <time.h>

/* An export by several processes: each claims ranges of rows (share/list.h). A row's files have the same
 * bytes from every process, so what a process writes after its claim was lost changes nothing. */

enum { FEW = 16, RANGES = 4096, NAP = 100000000 /* nanoseconds */ };
static const double LOOK_SECONDS = 1;

/* Returns the rows of a range, which ends with a sync of the file system. */
static int64_t range_rows(int64_t rows)
{
	int64_t step = FEW;
	while (rows / step >= RANGES)
		step *= 2;
	return step;
}

/* Tells the caller who is waited for. */
static int watch(struct smalti_export_run *run, const char *holder, struct smalti_error *error)
{
	run->progress->waits_for = holder;
	const int status = smalti_export_watch(run, error);
	run->progress->waits_for = NULL;
	return status;
}

static bool bear_lock(void *user, const char *holder, double seconds)
{
	struct smalti_error stopped = SMALTI_NO_ERROR;
	(void)seconds;
	return watch(user, holder, &stopped) == 0;
}

static int wait_for_others(struct smalti_export_run *run, const char *holder, struct smalti_error *error)
{
	for (const double until = smalti_now() + LOOK_SECONDS; smalti_now() < until;) {
		if (watch(run, holder, error) < 0)
			return -1;
		nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
	}
	return 0;
}

/* Writes the rows of a range, and makes them safe. */
static int write_range(struct smalti_export_run *run, const struct smalti_range *range,
		       struct smalti_error *error)
{
	SCOPED(smalti_features_close)
	struct smalti_features *reader = smalti_export_open(run, range->first, error);
	int status = reader ? 1 : -1;
	for (int64_t row = range->first; row < range->end && status > 0; row++) {
		status = smalti_export_row(run, reader, error);
		if (status > 0 && smalti_export_watch(run, error) < 0)
			status = -1;
	}
	return status < 0 ? -1 : run->kind->settle(run, true, error);
}

static void count_rows(struct smalti_export_run *run)
{
	run->progress->rows = run->progress->safe = smalti_shared_list_done(run->list);
}

static int export_range(struct smalti_export_run *run, const struct smalti_range *range,
			struct smalti_error *error)
{
	const int64_t failed = run->progress->failed;
	if (write_range(run, range, error) < 0) {
		smalti_shared_list_abandon(run->list, range);
		return -1;
	}
	return smalti_shared_list_finish(run->list, range, run->progress->failed > failed, error);
}

int smalti_export_ranges(struct smalti_export_run *run, struct smalti_error *error)
{
	enum smalti_claim_status status = SMALTI_CLAIM_TAKEN;
	while (status != SMALTI_CLAIM_NONE) {
		struct smalti_range range;
		char holder[SMALTI_HOLDER];
		status = smalti_shared_list_claim(run->list, &range, holder, error);
		if (status == SMALTI_CLAIM_FAILED ||
		    (status == SMALTI_CLAIM_TAKEN && export_range(run, &range, error) < 0))
			return -1;
		count_rows(run);
		if (status == SMALTI_CLAIM_WAIT && wait_for_others(run, holder, error) < 0)
			return -1;
	}
	run->progress->complete = true;
	return 0;
}

/* Refuses an output that has a file of another kind of export. */
static int refuse_beside(const struct smalti_export_run *run, const char *file, const char *holds,
			 struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", run->options->output, file);
	const int there = path ? smalti_find_file(path, error) : -1;
	return there <= 0 ? there
			  : smalti_fail(error, SMALTI_EINVAL, "%s: holds %s, or name another directory",
					run->options->output, holds);
}

int smalti_export_join(struct smalti_export_run *run, struct smalti_error *error)
{
	static const struct smalti_identity_remedy remedies[] = {{"features", "the directory of features"},
								 {NULL, NULL}};
	char features[SMALTI_EXPORT_DIGEST];
	smalti_export_digest(run, features);
	SCOPED(cJSON_Delete) cJSON *identity = cJSON_CreateObject();
	SCOPED(free) char *directory = smalti_format(error, "%s/" SMALTI_EXPORT_SHARE, run->options->output);
	if (!directory || !cJSON_AddStringToObject(identity, "format", run->kind->name) ||
	    !cJSON_AddStringToObject(identity, "features", features))
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the export");
	const struct smalti_shared_list_options options = {
	    .identity = identity,
	    .rules = {.remedies = remedies},
	    .items = run->info.rows,
	    .step = range_rows(run->info.rows),
	    .wait = {bear_lock, run, run->options->lease_seconds}};
	if (refuse_beside(run, SMALTI_EXPORT_STATE, "the export of one process: go on without --share",
			  error) < 0 ||
	    smalti_make_directory(run->options->output, error) < 0)
		return -1;
	run->list = smalti_shared_list_open(directory, &options, error);
	if (!run->list)
		return -1;
	count_rows(run);
	return 0;
}

int smalti_export_check_alone(const struct smalti_export_run *run, struct smalti_error *error)
{
	return refuse_beside(run, SMALTI_EXPORT_SHARE "/share.json",
			     "an export that processes share: give --share", error);
}
