/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/ablation.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mix.h"
#include "bench/memory.h"
#include "bench/online.h"
#include "bench/peak.h"
#include "bench/statistics.h"
#include "cli/signals.h"
#include "image/image_writer.h"
#include "jobs/precision.h"
#include "report/training.h"
#include "rt/device_use.h"
#include "rt/session.h"

#include <math.h>
#include <stdlib.h>

/* The data set */

static const char caption[] =
    "a watercolour of a lighthouse on a cliff above a stormy sea at dusk, gulls around its lantern, a small "
    "red boat on the waves below, long shadows and warm light, number";

/* Fills a row: smooth in both directions, with noise in the lowest bits. It takes a decoder as long as a
 * photograph. */
static void fill_row(unsigned char *row, int64_t side, int64_t y, uint64_t *state)
{
	for (int64_t x = 0; x < side; x++)
		for (int c = 0; c < 3; c++)
			row[3 * x + c] = (unsigned char)((x * (c + 1) + y * (3 - c)) * 60 / side +
							 (smalti_mix(++*state) & 7));
}

static int write_rows(struct smalti_image_writer *writer, int64_t side, uint64_t seed,
		      struct smalti_error *error)
{
	SCOPED(free) unsigned char *row = smalti_calloc(side, 3, error);
	for (int64_t y = 0; row && y < side; y++) {
		fill_row(row, side, y, &seed);
		if (smalti_image_write_rows(writer, y, 1, row, error) < 0)
			return -1;
	}
	return row ? smalti_image_finish(writer, error) : -1;
}

static int write_image(const char *path, int64_t side, uint64_t seed, struct smalti_error *error)
{
	const struct smalti_image_format format = {
	    .encoding = SMALTI_IMAGE_PNG, .width = side, .height = side, .depth = 8};
	struct smalti_image_writer *writer = smalti_image_create(path, &format, error);
	if (writer && write_rows(writer, side, seed, error) == 0)
		return smalti_image_commit(writer, error);
	smalti_image_abort(writer);
	return -1;
}

int smalti_ablation_make_items(const struct smalti_ablation *ablation, struct smalti_error *error)
{
	SCOPED(free) char *list = smalti_format(error, "%s/list.jsonl", ablation->directory);
	struct smalti_writer *writer = list ? smalti_writer_open(list, error) : NULL;
	int status = writer ? 0 : -1;
	for (int64_t i = 0; i < ablation->items && status == 0; i++) {
		SCOPED(free) char *path = smalti_format(error, "%s/%" PRId64 ".png", ablation->directory, i);
		status = path ? write_image(path, ablation->picture_size, (uint64_t)i << 32, error) : -1;
		fprintf(smalti_writer_stream(writer),
			"{\"path\": \"%" PRId64 ".png\", \"prompt\": \"%s %" PRId64 "\"}\n", i, caption, i);
	}
	if (status == 0)
		return smalti_writer_commit(writer, error);
	smalti_writer_abort(writer);
	return -1;
}

/* Extraction */

static enum smalti_extract_action go_on_extracting(void *user, const struct smalti_extract_progress *progress)
{
	(void)user, (void)progress;
	return smalti_signals_caught() ? SMALTI_EXTRACT_DROP : SMALTI_EXTRACT_CONTINUE;
}

/* Sets the options; `list` must last as long. */
static void set_extraction(const struct smalti_ablation *ablation, const char *const *list,
			   const char *output, struct smalti_extract_options *options)
{
	smalti_extract_defaults(options);
	options->inputs = list;
	options->input_count = 1;
	options->output = output;
	options->text = options->images = true;
	options->image_size = ablation->image_size;
	options->model = ablation->model;
}

static char *list_of(const struct smalti_ablation *ablation, struct smalti_error *error)
{
	return smalti_format(error, "%s/list.jsonl", ablation->directory);
}

int smalti_ablation_extract(const struct smalti_ablation *ablation, enum smalti_compression compression,
			    const char *name, int64_t *stored, struct smalti_error *error)
{
	SCOPED(free) char *list = list_of(ablation, error);
	SCOPED(free) char *output = smalti_format(error, "%s/%s", ablation->directory, name);
	struct smalti_extract_options options;
	struct smalti_extract_result result;
	if (!list || !output)
		return -1;
	set_extraction(ablation, (const char *const[]){list}, output, &options);
	options.compression = compression;
	struct smalti_session *session = smalti_session_open(ablation->session, error);
	int status = session ? smalti_extract(session, &options, go_on_extracting, NULL, &result, error) : -1;
	if (session && smalti_session_close(session, error) < 0)
		status = -1;
	if (status == 0 && result.failures)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: %" PRId64 " items failed; smalti report says why", output,
				   result.failures);
	*stored = status == 0 ? result.progress.written_bytes / ablation->items : 0;
	return status;
}

/* Training */

/* A run, followed by its progress. */
struct following {
	struct smalti_online *online; /* NULL: no features are computed */
	int64_t batch, steps;         /* steps that were made */
	double at;                    /* when the last one ended */
	double *seconds;              /* of each step, from the end of the one before */
	double computing;             /* seconds of them, in sum */
	struct smalti_error error;    /* why computing features failed; code 0: it did not */
};

/* Computes features before every step but the first, which does not count. */
static int compute_features(struct following *f, const struct smalti_train_progress *progress)
{
	if (!f->online || progress->step == progress->steps)
		return 0;
	const int status = smalti_online_compute(f->online, f->batch, &f->error);
	f->computing += smalti_now() - f->at;
	return status;
}

static enum smalti_train_action follow(void *user, const struct smalti_train_progress *progress)
{
	struct following *f = user;
	if (progress->note || progress->step == f->steps)
		return SMALTI_TRAIN_CONTINUE;
	const double now = smalti_now();
	f->seconds[f->steps++] = now - f->at;
	f->at = now;
	return smalti_signals_caught() || compute_features(f, progress) < 0 ? SMALTI_TRAIN_STOP
									    : SMALTI_TRAIN_CONTINUE;
}

static void set_options(const struct smalti_ablation *ablation, const struct smalti_ablation_way *way,
			struct smalti_train_options *options)
{
	smalti_train_defaults(options);
	options->data.prefetch = way->prefetch;
	options->model = ablation->model;
	options->model.precision = way->precision;
	options->steps = ablation->repeats + 1;
	options->batch = ablation->batch * way->batches;
	options->lanes = ablation->lanes;
	options->recomputation = way->recomputation;
	options->ema = 0;
	options->save_every = 0;
}

static double sum_of(const struct smalti_training_history *history, enum smalti_training_field field)
{
	double sum = 0;
	for (int64_t i = 1; i < history->count; i++)
		sum += history->points[i].values[field];
	return sum;
}

static double busy_of(const struct smalti_training_history *history)
{
	double sum = 0;
	for (int64_t i = 1; i < history->count; i++)
		for (int worker = 0; worker < SMALTI_TRAINING_WORKERS; worker++)
			sum += (double)history->points[i].busy[worker];
	return sum;
}

/* Reads the steps after the first, which took `seconds` with the work before each. */
static int read_log(const char *run, int64_t batch, int workers, double seconds,
		    struct smalti_ablation_training *result, double *flops, struct smalti_error *error)
{
	struct smalti_training_history history;
	int status = smalti_training_history_read(run, &history, error);
	if (status == 0 && history.count < 2)
		status = smalti_fail(error, SMALTI_EIO, "%s/log.jsonl: the steps are not there", run);
	if (status == 0) {
		const struct smalti_training_point *last = &history.points[history.count - 1];
		*flops = last->values[SMALTI_TRAINING_TFLOPS] * last->values[SMALTI_TRAINING_SECONDS] * 1e12 /
			 (double)batch;
		result->data = sum_of(&history, SMALTI_TRAINING_DATA_SECONDS) / seconds;
		result->update = sum_of(&history, SMALTI_TRAINING_UPDATE_SECONDS) / seconds;
		result->busy = busy_of(&history) / (seconds * workers);
	}
	smalti_training_history_free(&history);
	return status;
}

/* Measures the peak after the run; that of CPUs is known in f32 only. */
static double peak_of(struct smalti_session *session, enum smalti_precision precision)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	double peak = precision == SMALTI_PRECISION_F32 ? smalti_peak_of_workers(session) : (double)NAN;
	const int devices = smalti_devices_use(session, uses);
	for (int i = 0; i < devices; i++)
		peak +=
		    smalti_peak_of_device(session, (int)uses[i].worker, smalti_precision_dtype(precision));
	return peak;
}

/* Opens the computing of features in each step, if there are any. */
static int open_online(struct smalti_session *session, const struct smalti_ablation *ablation,
		       const struct smalti_ablation_way *way, const char *list, struct following *f,
		       struct smalti_error *error)
{
	struct smalti_extract_options options;
	if (!way->computed)
		return 0;
	set_extraction(ablation, &list, "none", &options);
	options.text = way->computed & SMALTI_ABLATION_TEXT;
	options.images = way->computed & SMALTI_ABLATION_IMAGES;
	f->online = smalti_online_open(session, &options, error);
	return f->online ? 0 : -1;
}

static int train_with(struct smalti_session *session, const struct smalti_ablation *ablation,
		      const struct smalti_ablation_way *way, const char *run, struct following *f,
		      struct smalti_ablation_training *result, struct smalti_error *error)
{
	SCOPED(free) char *features = smalti_format(error, "%s/%s", ablation->directory, way->features);
	struct smalti_train_options options;
	struct smalti_train_result trained;
	double flops = 0, all = 0;
	if (!features)
		return -1;
	set_options(ablation, way, &options);
	options.data.directories = (const char *const[]){features};
	options.data.directory_count = 1;
	options.output = run;
	if (smalti_train(session, &options, follow, f, &trained, error) < 0 || smalti_pass(error, &f->error))
		return -1;
	const double peak = peak_of(session, way->precision);
	for (int i = 1; i <= ablation->repeats; i++)
		all += f->seconds[i];
	if (read_log(run, options.batch, session->workers, all, result, &flops, error) < 0)
		return -1;
	result->seconds = smalti_median(f->seconds + 1, ablation->repeats) / (double)options.batch;
	result->computing = f->computing / all;
	result->bound = flops / peak;
	return 0;
}

static int train_in(struct smalti_session *session, const struct smalti_ablation *ablation,
		    const struct smalti_ablation_way *way, const char *run,
		    struct smalti_ablation_training *result, struct smalti_error *error)
{
	SCOPED(free) char *list = list_of(ablation, error);
	SCOPED(free) double *seconds = smalti_calloc(ablation->repeats + 1, sizeof(*seconds), error);
	struct following f = {
	    .batch = ablation->batch * way->batches, .at = smalti_now(), .seconds = seconds};
	const int status = list && seconds && open_online(session, ablation, way, list, &f, error) == 0
			       ? train_with(session, ablation, way, run, &f, result, error)
			       : -1;
	smalti_online_close(f.online);
	return status;
}

int smalti_ablation_train(const struct smalti_ablation *ablation, const struct smalti_ablation_way *way,
			  struct smalti_ablation_training *result, struct smalti_error *error)
{
	SCOPED(free) char *run = smalti_format(error, "%s/run", ablation->directory);
	const bool fresh = smalti_peak_reset();
	struct smalti_session *session = run ? smalti_session_open(ablation->session, error) : NULL;
	int status = session ? train_in(session, ablation, way, run, result, error) : -1;
	result->peak = fresh ? smalti_peak_read() : -1;
	if (session && smalti_session_close(session, error) < 0)
		status = -1;
	if (run)
		smalti_remove_directory(run);
	return status;
}
