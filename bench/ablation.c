/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/ablation.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mix.h"
#include "bench/memory.h"
#include "bench/peak.h"
#include "bench/statistics.h"
#include "cli/report_training.h"
#include "image/image_writer.h"
#include "jobs/precision.h"
#include "rt/device_use.h"
#include "rt/session.h"

#include <math.h>
#include <stdlib.h>

/* The data set */

static const char caption[] =
    "a watercolour of a lighthouse on a cliff above a stormy sea at dusk, gulls around its lantern, a small "
    "red boat on the waves below, long shadows and warm light, number";

static void fill_with_noise(unsigned char *row, int64_t bytes, uint64_t *state)
{
	for (int64_t i = 0; i < bytes; i++)
		row[i] = (unsigned char)smalti_mix(++*state);
}

static int write_rows(struct smalti_image_writer *writer, int64_t side, uint64_t seed,
		      struct smalti_error *error)
{
	SCOPED(free) unsigned char *row = smalti_calloc(side, 3, error);
	for (int64_t y = 0; row && y < side; y++) {
		fill_with_noise(row, 3 * side, &seed);
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
		status = path ? write_image(path, ablation->image_size, (uint64_t)i << 32, error) : -1;
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
	return SMALTI_EXTRACT_CONTINUE;
}

/* In a session of its own. */
static int extract(const struct smalti_ablation *ablation, const struct smalti_extract_options *options,
		   double *seconds, int64_t *written, struct smalti_error *error)
{
	struct smalti_extract_result result;
	struct smalti_session *session = smalti_session_open(ablation->session, error);
	const double began = smalti_now();
	int status = session ? smalti_extract(session, options, go_on_extracting, NULL, &result, error) : -1;
	*seconds = smalti_now() - began;
	if (session && smalti_session_close(session, error) < 0)
		status = -1;
	if (status == 0 && result.failures)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: %" PRId64 " items failed; smalti report says why", options->output,
				   result.failures);
	*written = status == 0 ? result.progress.written_bytes : 0;
	return status;
}

/* The first item alone, elsewhere, tells what opening the model takes. */
static int extract_twice(const struct smalti_ablation *ablation, struct smalti_extract_options *options,
			 const char *output, struct smalti_ablation_extraction *result,
			 struct smalti_error *error)
{
	SCOPED(free) char *alone = smalti_format(error, "%s-first", output);
	double first, all;
	int64_t written;
	if (!alone)
		return -1;
	options->output = alone;
	options->end = 1;
	if (extract(ablation, options, &first, &written, error) < 0)
		return -1;
	smalti_remove_directory(alone);
	options->output = output;
	options->end = 0;
	if (extract(ablation, options, &all, &written, error) < 0)
		return -1;
	result->seconds = fmax(all - first, 0) / (double)(ablation->items - 1);
	result->stored = written / ablation->items;
	return 0;
}

int smalti_ablation_extract(const struct smalti_ablation *ablation, unsigned features,
			    enum smalti_compression compression, const char *name,
			    struct smalti_ablation_extraction *result, struct smalti_error *error)
{
	SCOPED(free) char *list = smalti_format(error, "%s/list.jsonl", ablation->directory);
	SCOPED(free) char *output = list ? smalti_format(error, "%s/%s", ablation->directory, name) : NULL;
	struct smalti_extract_options options;
	if (!output)
		return -1;
	smalti_extract_defaults(&options);
	options.inputs = (const char *const[]){list};
	options.input_count = 1;
	options.text = features & SMALTI_ABLATION_TEXT;
	options.images = features & SMALTI_ABLATION_IMAGES;
	options.image_size = ablation->image_size;
	options.compression = compression;
	options.model = ablation->model;
	const bool fresh = smalti_peak_reset();
	const int status = extract_twice(ablation, &options, output, result, error);
	result->peak = fresh ? smalti_peak_read() : -1;
	return status;
}

/* Training */

static enum smalti_train_action go_on_training(void *user, const struct smalti_train_progress *progress)
{
	(void)user, (void)progress;
	return SMALTI_TRAIN_CONTINUE;
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

/* Of the steps behind the first. */
static int read_log(const char *run, int64_t batch, int workers, struct smalti_ablation_training *result,
		    double *flops, struct smalti_error *error)
{
	struct smalti_training_history history;
	int status = smalti_training_history_read(run, &history, error);
	if (status == 0 && history.count < 2)
		status = smalti_fail(error, SMALTI_EIO, "%s/log.jsonl: the steps are not there", run);
	const int count = (int)history.count - 1;
	SCOPED(free) double *seconds = status == 0 ? smalti_calloc(count, sizeof(*seconds), error) : NULL;
	if (seconds) {
		const double all = sum_of(&history, SMALTI_TRAINING_SECONDS);
		for (int i = 0; i < count; i++)
			seconds[i] = history.points[i + 1].values[SMALTI_TRAINING_SECONDS];
		const struct smalti_training_point *last = &history.points[count];
		*flops = last->values[SMALTI_TRAINING_TFLOPS] * last->values[SMALTI_TRAINING_SECONDS] * 1e12 /
			 (double)batch;
		result->seconds = smalti_median(seconds, count) / (double)batch;
		result->data = sum_of(&history, SMALTI_TRAINING_DATA_SECONDS) / all;
		result->update = sum_of(&history, SMALTI_TRAINING_UPDATE_SECONDS) / all;
		result->busy = busy_of(&history) / (all * workers);
	}
	smalti_training_history_free(&history);
	return seconds ? 0 : -1;
}

/* Right behind the run. Of CPUs it is known in f32 alone. */
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

static int train_in(struct smalti_session *session, const struct smalti_ablation *ablation,
		    const struct smalti_ablation_way *way, const char *run,
		    struct smalti_ablation_training *result, struct smalti_error *error)
{
	SCOPED(free) char *features = smalti_format(error, "%s/%s", ablation->directory, way->features);
	struct smalti_train_options options;
	struct smalti_train_result trained;
	double flops;
	if (!features)
		return -1;
	set_options(ablation, way, &options);
	options.data.directories = (const char *const[]){features};
	options.data.directory_count = 1;
	options.output = run;
	if (smalti_train(session, &options, go_on_training, NULL, &trained, error) < 0)
		return -1;
	const double peak = peak_of(session, way->precision);
	if (read_log(run, options.batch, session->workers, result, &flops, error) < 0)
		return -1;
	result->bound = flops / peak;
	return 0;
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
