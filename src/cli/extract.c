/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/extract.h"
#include "base/clock.h"
#include "cli/device_lines.h"
#include "cli/lora.h"
#include "cli/numbers.h"
#include "cli/predict.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "extract/window.h"
#include "store/run_read.h"

#include <stdatomic.h>

/* Work in progress takes some seconds. On a starved machine it is not waited for, and SLURM waits for three
 * minutes. */
enum { FINISH_SECONDS = 120 };
enum { SIZES = 256 }; /* bytes of the line that says what is computed together */

struct extract {
	const struct smalti_extract_settings *settings;
	struct smalti_extract_options options;
	struct smalti_session *session;
	struct smalti_progress progress;
	double began;
	bool begun;
	bool locked; /* the message on the directory's lock was printed */
};

/* Reads A and B of "A:B", A below B. */
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

/* Splits "a,b" into two keys: the commas become NULs. The library refuses too many keys. */
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
	static const int64_t sides[] = {128, 256, 512, 1024, 2048, 2880}; /* as --img-size names them */
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
	if (s->range && (o->first || o->end))
		return smalti_fail(error, SMALTI_EINVAL, "--range excludes --start-index and --end-index");
	if (parse_pair("--range", s->range, ':', "START:END with START below END, as in 0:1000", &o->first,
		       &o->end, error) < 0 ||
	    parse_pair("--shard", s->shard, '/', "I/N with I from 0 to N - 1, as in 3/16", &o->part,
		       &o->parts, error) < 0)
		return -1;
	o->inputs = (const char *const *)operands;
	o->input_count = count;
	o->text = s->t5 || !s->vae;
	o->images = s->vae || !s->t5;
	o->image_size = sides[s->image_size];

	o->stored_orientation = s->orientation == 1;
	set_keys(o, &s->caption_keys);
	return smalti_extract_check(o, error);
}

/* A second signal came. */
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
	else
		snprintf(detail, SMALTI_PROGRESS_DETAIL, "extracting");
}

/* Says what is computed together, and by which memory. */
static void describe_sizes(const struct smalti_extract_progress *p, char text[SIZES])
{
	char memory[SMALTI_NUMBER];
	text[0] = '\0';
	if (p->pack_tokens)
		smalti_append(text, SIZES, ", ", "captions in packs of %" PRId64 " tokens", p->pack_tokens);
	if (p->pack_images)
		smalti_append(text, SIZES, ", ", "%" PRId64 " image%s at a time", p->pack_images,
			      smalti_plural(p->pack_images));
	smalti_append(text, SIZES, ", ", "by %s of %s; shards of %" PRId64 " items",
		      smalti_number_bytes((double)p->memory, memory), p->memory_of, p->shard_items);
}

static void show_notes(struct extract *e, const struct smalti_extract_progress *progress)
{
	char sizes[SIZES];
	describe_sizes(progress, sizes);
	const char *const notes[] = {progress->note, progress->unused, sizes};
	for (size_t i = 0; i < COUNT_OF(notes); i++)
		if (notes[i] && !e->settings->quiet)
			smalti_progress_print(&e->progress, "smalti extract: %s", notes[i]);
}

static enum smalti_extract_action on_watch(void *user, const struct smalti_extract_progress *progress)
{
	struct extract *e = user;
	char detail[SMALTI_PROGRESS_DETAIL];
	if (progress->locked_by)
		smalti_progress_locked(&e->progress, "smalti extract", e->options.output, progress->locked_by,
				       progress->locked, &e->locked);
	if (progress->items == 0) { /* `listed` is a share of the list */
		smalti_progress_within(&e->progress, progress->listed, "reading the list");
		smalti_progress_update(&e->progress, 0, 1);
	} else {
		if (!e->begun) {
			smalti_progress_begin(&e->progress, stderr, "items", e->settings->quiet);
			show_notes(e, progress);
		}
		e->begun = true;
		describe(progress, detail);
		e->progress.failed = progress->failed;
		smalti_progress_within(&e->progress, 0, detail);
		smalti_progress_update(&e->progress, progress->done, progress->items);
	}
	if (atomic_load(&drops))
		return SMALTI_EXTRACT_DROP;
	return smalti_signals_caught() ? SMALTI_EXTRACT_FINISH : SMALTI_EXTRACT_CONTINUE;
}

/* Refuses what simulations of extraction do not know. */
static int check_prediction(const struct extract *e, struct smalti_error *error)
{
	const struct smalti_extract_options *o = &e->options;
	const struct smalti_model_options *model = &o->model;
	const struct smalti_unpredicted unknown[] = {
	    {"--lora", e->settings->lora.count > 0},
	    {"--vae-model", model->vae != NULL},
	    {"--text-encoder", model->text_encoder != NULL},
	    {"--text-encoder-precision", model->text_encoder_precision != SMALTI_TEXT_ENCODER_STORED},
	    {"several of --caption-key", o->caption_count > 1}};
	return smalti_predict_check(e->settings->predict, unknown, COUNT_OF(unknown), error);
}

/* Sets what this run has computed: captions that are all as long as they were on average. */
static void set_work(struct smalti_simulate_options *work, const struct smalti_extract_options *o,
		     const struct smalti_extract_progress *p)
{
	work->job = SMALTI_SIMULATED_EXTRACTION;
	work->model = o->model.directory;
	work->precision = (int)o->model.precision;
	work->caption_tokens = p->captions ? (p->tokens + p->captions / 2) / p->captions : 0;
	work->extraction = (struct smalti_simulated_extraction){
	    .items = p->made, .image_size = o->image_size, .t5 = o->text, .vae = o->images};
}

/* Returns the log of this process's run among those of the directory; NULL: it has none. */
static const struct smalti_run *own_run(const struct smalti_runs *runs)
{
	for (int i = runs->count - 1; i >= 0; i--)
		if (runs->items[i].pid == getpid() && runs->items[i].count > 0)
			return &runs->items[i];
	return NULL;
}

static cJSON *predict_run(struct extract *e, const struct smalti_extract_progress *progress,
			  const struct smalti_run *own)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(free) char *log = smalti_format(&error, "%s/runs/%s", e->options.output, own->file);
	struct smalti_simulate_options work =
	    smalti_predict_begin(e->settings->predict, e->session, &e->settings->session);
	set_work(&work, &e->options, progress);
	return smalti_predict(&work, own->points[own->count - 1].time, log,
			      !e->settings->quiet && !e->settings->json, &smalti_extract_command,
			      &e->progress);
}

/* Returns what --predict gives, or NULL. */
static cJSON *predict(struct extract *e, const struct smalti_extract_progress *progress)
{
	struct smalti_runs runs;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_run *own =
	    smalti_runs_read(e->options.output, &runs, &error) == 0 ? own_run(&runs) : NULL;
	cJSON *prediction = own ? predict_run(e, progress, own) : NULL;
	if (!own)
		smalti_progress_print(&e->progress, "smalti extract: nothing is predicted: %s",
				      error.code ? error.message : "the run has no log");
	smalti_runs_free(&runs);
	return prediction;
}

static bool print_json(const struct extract *e, const struct smalti_extract_result *result, cJSON *prediction)
{
	const struct smalti_extract_progress *p = &result->progress;
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "folder", e->options.output);
	cJSON_AddNumberToObject(object, "items", (double)p->items);
	cJSON_AddNumberToObject(object, "done", (double)p->done);
	cJSON_AddNumberToObject(object, "made", (double)p->made);
	cJSON_AddNumberToObject(object, "failed", (double)result->failures);
	cJSON_AddNumberToObject(object, "passed_over", (double)p->passed_over);
	if (p->passed_over)
		cJSON_AddStringToObject(object, "first_passed_over", result->first_passed_over);
	cJSON_AddNumberToObject(object, "captions", (double)p->captions);
	cJSON_AddNumberToObject(object, "tokens", (double)p->tokens);
	cJSON_AddNumberToObject(object, "pictures", (double)p->images);
	cJSON_AddNumberToObject(object, "read_bytes", (double)p->read_bytes);
	cJSON_AddNumberToObject(object, "written_bytes", (double)p->written_bytes);
	smalti_json_add_seconds(object, smalti_now() - e->began);
	if (result->stopped && smalti_signals_caught())
		cJSON_AddStringToObject(object, "stopped", smalti_signals_caught());
	if (result->log.code)
		smalti_json_add_text(object, "log_lost", result->log.message);
	cJSON_AddItemToObject(object, "sizes", smalti_extract_sizes_json(p));
	smalti_device_json(object, e->session);
	if (prediction)
		cJSON_AddItemReferenceToObject(object, "predicted", prediction);
	return smalti_json_print(object);
}

static void summarize(struct extract *e, const struct smalti_extract_result *result)
{
	const struct smalti_extract_progress *p = &result->progress;
	const double seconds = smalti_now() - e->began;
	char failed[64] = "", passed[320] = "";
	if (result->failures)
		snprintf(failed, sizeof(failed), "; %" PRId64 " failure%s", result->failures,
			 smalti_plural(result->failures));
	if (p->passed_over)
		snprintf(passed, sizeof(passed), "; %" PRId64 " passed over, such as %s", p->passed_over,
			 result->first_passed_over);
	smalti_progress_print(&e->progress,
			      "%" PRId64 " of %" PRId64 " items, %" PRId64 " now in %.1f s (%.3g/s)%s%s: %s",
			      p->done, p->items, p->made, seconds,
			      seconds > 0 ? (double)p->made / seconds : 0, failed, passed, e->options.output);
	smalti_device_lines(&e->progress, e->session);
}

static enum smalti_exit report(struct extract *e, const struct smalti_extract_result *result, bool broken_off)
{
	const struct smalti_extract_progress *p = &result->progress;
	const bool unfinished = broken_off || (result->stopped && p->done < p->items);
	enum smalti_exit status = unfinished         ? SMALTI_EXIT_FAILED
				  : result->failures ? SMALTI_EXIT_SOME_FAILED
						     : SMALTI_EXIT_OK;
	if (result->log.code)
		smalti_progress_print(&e->progress, "smalti extract: the run's log is lost: %s",
				      result->log.message);
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
	const bool predicts = e->settings->predict && !unfinished && p->made > 0;
	SCOPED(cJSON_Delete) cJSON *prediction = predicts ? predict(e, p) : NULL;
	if (e->settings->json && !print_json(e, result, prediction))
		status = SMALTI_EXIT_FAILED;
	return status;
}

static enum smalti_exit extract(struct extract *e)
{
	struct smalti_extract_result result;
	struct smalti_error error = SMALTI_NO_ERROR;
	e->began = smalti_now();
	smalti_signals_second(drop, NULL);
	smalti_progress_begin(&e->progress, stderr, "lists", e->settings->quiet);
	const int status = smalti_extract(e->session, &e->options, on_watch, e, &result, &error);
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
	smalti_signals_finish_within(FINISH_SECONDS);
	if (set_options(&e, count, operands, &error) == 0 && check_prediction(&e, &error) == 0 &&
	    smalti_lora_parse(&e.settings->lora, &e.options.model, &error) == 0)
		e.session = smalti_held_session(&e.settings->session, &error);
	exit = e.session ? extract(&e) : smalti_command_fail(&smalti_extract_command, &error);
	if (e.session && smalti_session_close(e.session, &error) < 0)
		exit = smalti_command_fail(&smalti_extract_command, &error);
	smalti_lora_free(&e.options.model);
	return exit;
}
