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
#include "smalti/extract.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct extract {
	const struct smalti_extract_settings *settings;
	struct smalti_extract_options options;
	struct smalti_progress progress;
	double began;
	bool begun;
	struct smalti_locked locked;
};

/* "A" and "B" of "AxB". */
static int parse_pair(const char *option, const char *text, char between, const char *expected,
		      int64_t *first, int64_t *second, struct smalti_error *error)
{
	char left[24];
	const char *at = strchr(text, between);
	const size_t length = at ? (size_t)(at - text) : 0;
	if (at && length < sizeof(left)) {
		memcpy(left, text, length);
		left[length] = 0;
		if (smalti_parse_int64(left, 0, INT64_MAX, first, NULL) == 0 &&
		    smalti_parse_int64(at + 1, 0, INT64_MAX, second, NULL) == 0)
			return 0;
	}
	return smalti_fail(error, SMALTI_EINVAL, "%s: expected %s, found '%s'", option, expected, text);
}

static int set_range(struct smalti_extract_options *o, const struct smalti_extract_settings *s,
		     struct smalti_error *error)
{
	if (s->range &&
	    parse_pair("--range", s->range, ':', "START:END, as in 0:1000", &o->first, &o->end, error) < 0)
		return -1;
	if (s->range && (o->end <= o->first))
		return smalti_fail(error, SMALTI_EINVAL, "--range: expected START below END, found '%s'",
				   s->range);
	if (s->shard &&
	    parse_pair("--shard", s->shard, '/', "I/N, as in 3/16", &o->part, &o->parts, error) < 0)
		return -1;
	if (s->shard && o->part >= o->parts)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--shard: expected I/N with I from 0 to N - 1, found '%s'", s->shard);
	return 0;
}

static int add_key(struct smalti_extract_options *o, const char *key, struct smalti_error *error)
{
	if (!*key)
		return smalti_fail(error, SMALTI_EINVAL, "--caption-key: a key is empty");
	for (int i = 0; i < o->caption_count; i++)
		if (strcmp(o->captions[i], key) == 0)
			return smalti_fail(error, SMALTI_EINVAL, "--caption-key: %s is there twice", key);
	if (o->caption_count == SMALTI_FEATURES_CAPTIONS_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "--caption-key: at most %d keys",
				   SMALTI_FEATURES_CAPTIONS_MAX);
	o->captions[o->caption_count++] = key;
	return 0;
}

/* All keys in one text, for free(). */
static char *join_keys(const struct smalti_string_list *list, struct smalti_error *error)
{
	size_t length = 1, at = 0;
	for (int i = 0; i < list->count; i++)
		length += strlen(list->items[i]) + 1;
	char *keys = calloc(length, 1);
	if (!keys)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for %zu bytes", length);
	for (int i = 0; keys && i < list->count; i++) {
		const size_t bytes = strlen(list->items[i]);
		memcpy(keys + at, list->items[i], bytes);
		at += bytes;
		keys[at++] = i + 1 < list->count ? ',' : 0;
	}
	return keys;
}

/* "a,b" is two keys: the commas become ends. */
static int set_keys(struct smalti_extract_options *o, char *keys, struct smalti_error *error)
{
	for (char *key = *keys ? keys : NULL, *comma; key; key = comma) {
		comma = strchr(key, ',');
		if (comma)
			*comma++ = 0;
		if (add_key(o, key, error) < 0)
			return -1;
	}
	return 0;
}

static int set_options(struct extract *e, char *keys, int count, char **operands, struct smalti_error *error)
{
	const struct smalti_extract_settings *s = e->settings;
	struct smalti_extract_options *o = &e->options;
	smalti_extract_defaults(o);
	if (count == 0)
		return smalti_fail(error, SMALTI_EINVAL, "no data set: name a list, a directory or tars");
	if (!s->output || !*s->output)
		return smalti_fail(error, SMALTI_EINVAL, "no place for the features: give -o DIR");
	if (s->shard_items && s->shard_bytes)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--shard-items and --shard-bytes exclude each other");
	o->inputs = (const char *const *)operands;
	o->input_count = count;
	o->output = s->output;
	o->image_root = s->image_root;
	o->text = s->t5 || !s->vae;
	o->images = s->vae || !s->t5;
	o->cleaning = (enum smalti_cleaning)s->cleaning;
	o->max_tokens = s->max_tokens;
	o->image_size = smalti_extract_image_sizes[s->image_size];
	o->fit = (enum smalti_fitting)s->fit;
	o->stored_orientation = s->orientation == 1;
	o->type = (enum smalti_features_type)s->dtype;
	o->compression = (enum smalti_compression)s->compress;
	o->shard_items = s->shard_items;
	o->shard_bytes = s->shard_bytes;
	o->lease_seconds = s->lease;
	o->retry_failed = s->retry_failed;
	o->append = s->append;
	o->allow_mixed_isa = s->allow_mixed_isa;
	o->model = (struct smalti_model_options){.directory = s->model,
						 .tokenizer = s->tokenizer,
						 .text_encoder = s->text_encoder,
						 .vae = s->vae_model,
						 .variant = s->variant,
						 .precision = (enum smalti_precision)s->precision};
	return set_range(o, s, error) < 0 ? -1 : set_keys(o, keys, error);
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
	char *keys = join_keys(&e.settings->caption_keys, &error);
	if (keys && set_options(&e, keys, count, operands, &error) == 0)
		session = smalti_held_session(&e.settings->session, &error);
	exit = session ? extract(&e, session) : smalti_command_fail(&smalti_extract_command, &error);
	free(keys);
	if (session && smalti_session_close(session, &error) < 0)
		exit = smalti_command_fail(&smalti_extract_command, &error);
	return exit;
}
