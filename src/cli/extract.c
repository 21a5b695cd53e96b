/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/extract.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/held_session.h"
#include "cli/json_line.h"
#include "cli/locked.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "extract/parts.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct extract {
	const struct smalti_extract_settings *settings;
	struct smalti_extract_options options;
	struct smalti_progress progress;
	double began;
	bool begun;
	struct smalti_locked locked;
};

/* "A" and "B" of "A:B", A below B. */
static int parse_pair(const char *option, const char *text, char between, const char *expected,
		      int64_t *first, int64_t *second, struct smalti_error *error)
{
	char left[24];
	const char *at = text ? strchr(text, between) : NULL;
	const size_t length = at ? (size_t)(at - text) : 0;
	if (!text)
		return 0;
	if (at && length < sizeof(left)) {
		memcpy(left, text, length);
		left[length] = 0;
		if (smalti_parse_int64(left, 0, INT64_MAX, first, NULL) == 0 &&
		    smalti_parse_int64(at + 1, 0, INT64_MAX, second, NULL) == 0 && *first < *second)
			return 0;
	}
	return smalti_fail(error, SMALTI_EINVAL, "%s: expected %s, found '%s'", option, expected, text);
}

/* "a,b" is two keys: the commas become ends. The library refuses those that are too many. */
static void set_keys(struct smalti_extract_options *o, const struct smalti_string_list *list)
{
	for (int i = 0; i < list->count; i++)
		for (char *rest = (char *)list->items[i], *key; (key = strsep(&rest, ","));) {
			if (o->caption_count < SMALTI_FEATURES_CAPTIONS_MAX)
				o->captions[o->caption_count] = key;
			o->caption_count++;
		}
}

static int set_options(struct extract *e, int count, char **operands, struct smalti_error *error)
{
	const struct smalti_extract_settings *s = e->settings;
	struct smalti_extract_options *o = &e->options;
	*o = s->extract;
	if (count == 0)
		return smalti_fail(error, SMALTI_EINVAL, "no data set: name a list, a directory or tars");
	if (!o->output || !*o->output)
		return smalti_fail(error, SMALTI_EINVAL, "no place for the features: give -o DIR");
	if (o->shard_items && o->shard_bytes)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--shard-items and --shard-bytes exclude each other");
	if (parse_pair("--range", s->range, ':', "START:END with START below END, as in 0:1000", &o->first,
		       &o->end, error) < 0 ||
	    parse_pair("--shard", s->shard, '/', "I/N with I from 0 to N - 1, as in 3/16", &o->part,
		       &o->parts, error) < 0)
		return -1;
	o->inputs = (const char *const *)operands;
	o->input_count = count;
	o->text = s->t5 || !s->vae;
	o->images = s->vae || !s->t5;
	o->image_size = smalti_extract_image_sizes[s->image_size];
	o->stored_orientation = s->orientation == 1;
	set_keys(o, &s->caption_keys);
	return smalti_extract_check(o, error);
}

/* The second signal. */
static atomic_bool drops;

static void drop(void *user)
{
	(void)user;
	atomic_store(&drops, true);
}

static void describe(const struct smalti_extract_progress *progress, char detail[SMALTI_PROGRESS_DETAIL])
{
	if (progress->waiting_for)
		snprintf(detail, SMALTI_PROGRESS_DETAIL, "waiting for %s", progress->waiting_for);
	else if (progress->failed)
		snprintf(detail, SMALTI_PROGRESS_DETAIL, "%" PRId64 " failed", progress->failed);
	else
		snprintf(detail, SMALTI_PROGRESS_DETAIL, "extracting");
}

static void show_notes(struct extract *e, const struct smalti_extract_progress *progress)
{
	const char *const notes[] = {progress->note, progress->unused};
	for (int i = 0; i < 2; i++)
		if (notes[i] && !e->settings->quiet)
			smalti_progress_print(&e->progress, "smalti extract: %s", notes[i]);
}

static enum smalti_extract_action on_watch(void *user, const struct smalti_extract_progress *progress)
{
	struct extract *e = user;
	char detail[SMALTI_PROGRESS_DETAIL];
	if (progress->locked_by)
		smalti_locked_say(&e->locked, &e->progress, progress->locked_by, progress->locked);
	if (progress->items == 0) { /* of the list, in shares */
		smalti_progress_within(&e->progress, progress->listed, "reading the list");
		smalti_progress_update(&e->progress, 0, 1);
	} else {
		if (!e->begun) {
			smalti_progress_begin(&e->progress, stderr, "items", e->settings->quiet);
			show_notes(e, progress);
		}
		e->begun = true;
		describe(progress, detail);
		smalti_progress_within(&e->progress, 0, detail);
		smalti_progress_update(&e->progress, progress->done, progress->items);
	}
	if (atomic_load(&drops))
		return SMALTI_EXTRACT_DROP;
	return smalti_signals_caught() ? SMALTI_EXTRACT_FINISH : SMALTI_EXTRACT_CONTINUE;
}

static double rate(const struct extract *e, int64_t made)
{
	const double seconds = smalti_now() - e->began;
	return seconds > 0 ? (double)made / seconds : 0;
}

static bool print_json(const struct extract *e, const struct smalti_extract_result *result)
{
	bool broken = false;
	const struct smalti_extract_progress *p = &result->progress;
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "folder", e->options.output);
	cJSON_AddNumberToObject(object, "items", (double)p->items);
	cJSON_AddNumberToObject(object, "done", (double)p->done);
	cJSON_AddNumberToObject(object, "made", (double)p->made);
	cJSON_AddNumberToObject(object, "failed", (double)result->failures);
	cJSON_AddNumberToObject(object, "captions", (double)p->captions);
	cJSON_AddNumberToObject(object, "tokens", (double)p->tokens);
	cJSON_AddNumberToObject(object, "pictures", (double)p->images);
	smalti_json_add_seconds(object, smalti_now() - e->began);
	if (result->stopped && smalti_signals_caught())
		cJSON_AddStringToObject(object, "stopped", smalti_signals_caught());
	smalti_json_line(object, &broken);
	return !broken;
}

static void summarize(struct extract *e, const struct smalti_extract_result *result)
{
	const struct smalti_extract_progress *p = &result->progress;
	char failed[64] = "";
	if (result->failures)
		snprintf(failed, sizeof(failed), "; %" PRId64 " failure%s", result->failures,
			 smalti_plural(result->failures));
	smalti_progress_print(
	    &e->progress, "%" PRId64 " of %" PRId64 " items, %" PRId64 " now in %.1f s (%.3g/s)%s: %s",
	    p->done, p->items, p->made, smalti_now() - e->began, rate(e, p->made), failed, e->options.output);
}

static enum smalti_exit report(struct extract *e, const struct smalti_extract_result *result, bool broken_off)
{
	const struct smalti_extract_progress *p = &result->progress;
	const bool unfinished = broken_off || (result->stopped && p->done < p->items);
	enum smalti_exit status = unfinished         ? SMALTI_EXIT_FAILED
				  : result->failures ? SMALTI_EXIT_SOME_FAILED
						     : SMALTI_EXIT_OK;
	if (unfinished && p->items == 0)
		smalti_progress_print(
		    &e->progress,
		    "smalti extract: stopped by %s before anything was done; the same command "
		    "begins anew",
		    smalti_signals_caught());
	else if (unfinished)
		smalti_progress_print(&e->progress,
				      "smalti extract: stopped by %s: %" PRId64 " of %" PRId64
				      " items done; the same command goes on from there",
				      smalti_signals_caught(), p->done, p->items);
	else if (result->failures)
		smalti_progress_print(&e->progress,
				      "smalti extract: %" PRId64 " failure%s: see %s/failed.jsonl",
				      result->failures, smalti_plural(result->failures), e->options.output);
	if (!unfinished && !e->settings->quiet && !e->settings->json)
		summarize(e, result);
	else if (!unfinished && !result->failures)
		smalti_progress_end(&e->progress);
	if (e->settings->json && !print_json(e, result))
		status = SMALTI_EXIT_FAILED;
	return status;
}

static enum smalti_exit extract(struct extract *e, struct smalti_session *session)
{
	struct smalti_extract_result result;
	struct smalti_error error = SMALTI_NO_ERROR;
	e->began = smalti_now();
	e->locked = (struct smalti_locked){&smalti_extract_command, e->options.output, false};
	smalti_signals_second(drop, NULL);
	smalti_progress_begin(&e->progress, stderr, "lists", e->settings->quiet);
	const int status = smalti_extract(session, &e->options, on_watch, e, &result, &error);
	smalti_signals_second(NULL, NULL);
	const bool stopped = status < 0 && error.code == SMALTI_ECANCELLED && smalti_signals_caught();
	if (status == 0 || stopped)
		return report(e, &result, stopped);
	smalti_progress_end(&e->progress);
	return smalti_command_fail(&smalti_extract_command, &error);
}

enum smalti_exit smalti_extract_run(void *options, int count, char **operands)
{
	struct extract e = {.settings = options};
	struct smalti_error error = SMALTI_NO_ERROR;
	enum smalti_exit exit;
	smalti_signals_catch();
	struct smalti_session *session = NULL;
	if (set_options(&e, count, operands, &error) == 0)
		session = smalti_held_session(&e.settings->session, &error);
	exit = session ? extract(&e, session) : smalti_command_fail(&smalti_extract_command, &error);
	if (session && smalti_session_close(session, &error) < 0)
		exit = smalti_command_fail(&smalti_extract_command, &error);
	return exit;
}
