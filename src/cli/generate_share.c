/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate_share.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/signals.h"
#include "rt/session.h"
#include "share/member.h"

#include <time.h>

enum { NAP = 100000000 /* nanoseconds */ };
static const double LOOK_SECONDS = 1;

/* Waits for the lock; images that are made wait for it until they are dropped. */
static bool bear_lock(void *user, const char *holder, double seconds)
{
	struct smalti_generate_share *share = user;
	smalti_progress_locked(&share->generation->report.progress, "smalti generate", share->directory,
			       holder, seconds, &share->told);
	return share->claiming ? !smalti_signals_caught() : !smalti_signals_dropped();
}

/* Reads up to the first prompt, which decides the format of all lines. */
static int find_format(const struct smalti_source *source, struct smalti_error *error)
{
	enum smalti_prompts_status status = SMALTI_PROMPTS_BAD;
	while (status == SMALTI_PROMPTS_BAD) {
		struct smalti_prompt_line line;
		struct smalti_error cause = SMALTI_NO_ERROR;
		status = smalti_prompts_next(source->file, &line, &cause);
		smalti_prompt_line_free(&line);
		if (status == SMALTI_PROMPTS_FAILED)
			return smalti_pass(error, &cause);
	}
	return 0;
}

static int open_list(struct smalti_generate_share *share, struct smalti_error *error)
{
	struct smalti_generation *generation = share->generation;
	const struct smalti_source *source = &generation->source;
	if (smalti_line_index_make(&share->index, smalti_prompts_file(source->file), source->name, error) ||
	    find_format(source, error))
		return -1;
	if (share->index.lines == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "%s: no prompts in it", source->name);
	SCOPED(cJSON_Delete)
	cJSON *identity = smalti_generate_share_identity(generation, &share->index, error);
	const struct smalti_shared_list_options options = {
	    .identity = identity,
	    .rules = {.remedies = smalti_generate_share_remedies},
	    .items = share->index.lines,
	    .step = share->index.step,
	    .wait = {bear_lock, share, generation->options->lease_seconds}};
	share->claiming = true;
	if (identity)
		share->list = smalti_shared_list_open(share->directory, &options, error);
	return share->list ? 0 : -1;
}

int smalti_generate_share_open(struct smalti_generation *generation, struct smalti_error *error)
{
	struct smalti_generate_share *share = generation->share = smalti_calloc(1, sizeof(*share), error);
	if (!share)
		return -1;
	share->generation = generation;
	share->directory = smalti_format(error, "%s/.share", generation->output.directory);
	if (!share->directory || open_list(share, error))
		return -1;
	generation->report.shared.total = share->index.lines;
	generation->report.progress.unit = "prompts";
	if (smalti_shared_list_is_first(share->list))
		smalti_writer_clean(generation->output.directory, false);
	return 0;
}

void smalti_generate_share_close(struct smalti_generate_share *share)
{
	if (!share)
		return;
	for (struct smalti_generate_part *part = share->parts, *next; part; part = next) {
		next = part->next;
		free(part);
	}
	smalti_shared_list_close(share->list);
	free(share->directory);
	free(share);
}

int smalti_generate_share_find(const struct smalti_image_file *file, struct smalti_error *error)
{
	const enum smalti_image_file_state state = smalti_image_file_look(file, error);
	if (state == SMALTI_IMAGE_FILE_DIFFERENT)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: is there, of another prompt or other options: give each prompt an id "
				   "of its own, or move the file away",
				   file->path);
	return state == SMALTI_IMAGE_FILE_FOREIGN ? -1 : state == SMALTI_IMAGE_FILE_WHOLE;
}

/* An image that is complete. */
struct made {
	const char *directory;
	struct smalti_image_file *file;
};

static int put_in_place(void *user, struct smalti_error *error)
{
	const struct made *made = user;
	return smalti_member_refresh(made->directory, error) ||
		       smalti_generate_share_find(made->file, error) < 0
		   ? -1
		   : smalti_image_file_place(made->file, error);
}

int smalti_generate_share_commit(struct smalti_generation *generation,
				 const struct smalti_generate_part *part, struct smalti_image_file *file,
				 bool *lost, struct smalti_error *error)
{
	const char *directory = generation->output.directory;
	struct made made = {directory, file};
	if (smalti_image_file_finish(file, error) ||
	    smalti_shared_list_act(generation->share->list, &part->lines, put_in_place, &made, lost, error))
		return -1;
	return *lost ? 0 : smalti_sync_directory(directory, error);
}

/* Records what was made of a part, or lets others make the rest. The last part's process removes what killed
 * ones have left. */
static int finish(const struct smalti_generate_share *share, const struct smalti_generate_part *part,
		  struct smalti_error *error)
{
	if (part->dropped) {
		smalti_shared_list_abandon(share->list, &part->lines);
		return 0;
	}
	const int status = smalti_shared_list_finish(share->list, &part->lines, part->failed, error);
	if (status == 0 && smalti_shared_list_done(share->list) == share->index.lines)
		smalti_writer_clean(share->generation->output.directory, false);
	return status;
}

/* Finishes the parts whose images have all ended. */
static int settle(struct smalti_generate_share *share, struct smalti_error *error)
{
	int status = 0;
	for (struct smalti_generate_part **at = &share->parts; *at && status == 0;) {
		struct smalti_generate_part *part = *at;
		if (!part->submitted || part->images > 0) {
			at = &part->next;
			continue;
		}
		*at = part->next;
		status = finish(share, part, error);
		free(part);
	}
	share->generation->report.shared.done = smalti_shared_list_done(share->list);
	return status;
}

/* Submits the images of the part's lines. The part begins at a line that the index has, unless the record of
 * what is done says otherwise. */
static int make_lines(struct smalti_generate_share *share, struct smalti_batch *batch,
		      struct smalti_error *error)
{
	struct smalti_generation *generation = share->generation;
	const int64_t first = share->part->lines.first, end = share->part->lines.end;
	const int64_t start = first / share->index.step;
	bool more = true;
	smalti_prompts_seek(generation->source.file, share->index.starts[start], start * share->index.step);
	while (more && !generation->stopped) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		struct smalti_item item;
		const enum smalti_prompts_status status =
		    smalti_source_next(&generation->source, &item, &cause);
		const bool own =
		    status > SMALTI_PROMPTS_END && item.line.line > first && item.line.line <= end;
		more = status > SMALTI_PROMPTS_END && item.line.line < end;
		if (own && smalti_generation_ends(generation))
			generation->stopped = true;
		else if (own)
			smalti_generation_make(generation, batch, status, &item, &cause);
		smalti_prompt_line_free(&item.line);
		if (status == SMALTI_PROMPTS_FAILED)
			return smalti_pass(error, &cause);
	}
	share->part->dropped |= generation->stopped;
	return 0;
}

static int make_part(struct smalti_generate_share *share, struct smalti_batch *batch,
		     const struct smalti_range *lines, struct smalti_error *error)
{
	const struct smalti_source *source = &share->generation->source;
	struct smalti_generate_part *part = smalti_calloc(1, sizeof(*part), error);
	if (!part)
		return -1;
	*part = (struct smalti_generate_part){.lines = *lines, .next = share->parts};
	share->parts = share->part = part;
	if (smalti_line_index_check(&share->index, smalti_prompts_file(source->file), source->name, error) ||
	    smalti_member_refresh(share->generation->output.directory, error) ||
	    make_lines(share, batch, error))
		return -1;
	part->submitted = true;
	return 0;
}

/* Waits a moment for others, who have all that is left. */
static void wait_for_others(struct smalti_generate_share *share, const char *holder)
{
	struct smalti_generation *generation = share->generation;
	char detail[SMALTI_PROGRESS_DETAIL];
	snprintf(detail, sizeof(detail), "waiting for %.*s", SMALTI_PROGRESS_DETAIL - 16, holder);
	smalti_session_sleep(generation->session); /* workers would look for tasks all the time */
	for (const double until = smalti_now() + LOOK_SECONDS;
	     smalti_now() < until && !smalti_generation_ends(generation);) {
		smalti_image_report_progress(&generation->report, 0, detail);
		nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
	}
	smalti_session_wake(generation->session);
}

static enum smalti_claim_status claim(struct smalti_generate_share *share, struct smalti_range *lines,
				      char holder[SMALTI_HOLDER], struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	share->claiming = true;
	const enum smalti_claim_status status = smalti_shared_list_claim(share->list, lines, holder, &cause);
	share->claiming = false;
	if (status == SMALTI_CLAIM_FAILED && cause.code == SMALTI_ECANCELLED && smalti_signals_caught())
		return SMALTI_CLAIM_WAIT; /* for the lock, until the signal */
	if (status == SMALTI_CLAIM_FAILED)
		smalti_pass(error, &cause);
	return status;
}

/* Makes a part of the list. Returns 1 while something may be left. */
static int make_next(struct smalti_generate_share *share, struct smalti_batch *batch,
		     struct smalti_error *error)
{
	struct smalti_range lines;
	char holder[SMALTI_HOLDER];
	const enum smalti_claim_status status = claim(share, &lines, holder, error);
	if (status == SMALTI_CLAIM_TAKEN)
		return make_part(share, batch, &lines, error) || settle(share, error) ? -1 : 1;
	if (status == SMALTI_CLAIM_FAILED)
		return -1;
	const bool own = share->parts;
	smalti_batch_wait(batch);
	if (settle(share, error))
		return -1;
	if (status == SMALTI_CLAIM_WAIT && !own)
		wait_for_others(share, holder);
	return status == SMALTI_CLAIM_WAIT || own;
}

int smalti_generate_share_run(struct smalti_generation *generation, struct smalti_batch *batch,
			      struct smalti_error *error)
{
	struct smalti_generate_share *share = generation->share;
	int left = 1;
	while (left > 0 && !generation->stopped) {
		left = make_next(share, batch, error);
		generation->stopped |= left > 0 && smalti_generation_ends(generation);
	}
	smalti_batch_wait(batch);
	if (left >= 0 && settle(share, error))
		left = -1;
	return left < 0 ? -1 : 0;
}
