/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"
#include "base/file.h"
#include "share/hold.h"
#include "share/list.h"

#include <sys/stat.h>

enum { PREFETCH = 16, SHARD_BYTES = 1 << 30 };

static const struct smalti_export_kind *const kinds[] = {
    [SMALTI_EXPORT_PIXART] = &smalti_export_pixart,
    [SMALTI_EXPORT_SAFETENSORS] = &smalti_export_safetensors,
    [SMALTI_EXPORT_WEBDATASET] = &smalti_export_webdataset,
};

void smalti_export_defaults(struct smalti_export_options *options)
{
	*options = (struct smalti_export_options){.format = SMALTI_EXPORT_PIXART};
}

struct smalti_features *smalti_export_open(const struct smalti_export_run *run, int64_t skip,
					   struct smalti_error *error)
{
	struct smalti_features_options options;
	smalti_features_defaults(&options);
	options.skip = skip;
	options.prefetch = PREFETCH;
	return smalti_features_open(run->options->directory, &options, error);
}

int smalti_export_next(struct smalti_features *reader, struct smalti_features_row *row,
		       struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	const int found = smalti_features_next(reader, row, &cause);
	if (found >= 0)
		return found;
	*row = (struct smalti_features_row){.index = -1};
	return cause.code == SMALTI_ECORRUPT ? 1 : smalti_pass(error, &cause);
}

struct smalti_export_feature smalti_export_feature(const struct smalti_export_run *run,
						   const struct smalti_features_row *row, int number)
{
	const struct smalti_features_info *info = &run->info;
	const struct smalti_features_text *text = &row->texts[number < info->caption_count ? number : 0];
	const struct smalti_features_image *image = &row->image;
	if (number < info->caption_count)
		return (struct smalti_export_feature){
		    text->values, 2, {text->tokens, info->text_width}, text->tokens * info->text_width};
	return (struct smalti_export_feature){
	    image->values,
	    3,
	    {2 * info->latent_channels, image->latent_height, image->latent_width},
	    2 * info->latent_channels * image->latent_height * image->latent_width};
}

bool smalti_export_has_features(const struct smalti_features_row *row)
{
	bool any = row->image.latent_height > 0;
	for (int i = 0; i < SMALTI_FEATURES_CAPTIONS_MAX; i++)
		any = any || row->texts[i].tokens > 0;
	return any;
}

int smalti_export_watch(const struct smalti_export_run *run, struct smalti_error *error)
{
	const struct smalti_export_options *options = run->options;
	if (!options->on_progress || options->on_progress(options->user, run->progress))
		return 0;
	return smalti_fail(error, SMALTI_ECANCELLED, "stopped");
}

/* What is missing while a row is written is a part of the output. */
static bool is_of_a_row(enum smalti_code code)
{
	return smalti_is_of_input(code) && code != SMALTI_ENOENT;
}

/* Counts a row that failed and tells of it. */
static int refuse(struct smalti_export_run *run, const struct smalti_error *cause)
{
	run->progress->failed++;
	if (run->options->failed)
		run->options->failed(run->options->user, cause);
	return 0;
}

static int write_row(struct smalti_export_run *run, const struct smalti_features_row *row,
		     struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (!smalti_export_has_features(row)) {
		run->progress->empty++;
		return 0;
	}
	if (run->kind->row(run, row, &cause) == 0)
		return 0;
	if (!run->kind->fail_alone || !is_of_a_row(cause.code))
		return smalti_pass(error, &cause);
	smalti_error_prefix(&cause, "item '%s'", row->key);
	return refuse(run, &cause);
}

int smalti_export_row(struct smalti_export_run *run, struct smalti_features *reader,
		      struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	struct smalti_features_row row;
	const int found = smalti_features_next(reader, &row, &cause);
	int status = 0;
	if (found > 0)
		status = write_row(run, &row, error);
	else if (found < 0 && cause.code == SMALTI_ECORRUPT)
		status = refuse(run, &cause);
	else if (found < 0)
		status = smalti_pass(error, &cause);
	if (status)
		return -1; /* the next run must not skip a row that was not written */
	run->progress->rows += found != 0;
	return found != 0;
}

static int write_rows(struct smalti_export_run *run, struct smalti_features *reader,
		      struct smalti_error *error)
{
	for (int status = 1; status;) {
		status = smalti_export_row(run, reader, error);
		if (status > 0 && run->settled && smalti_export_save(run, error))
			status = -1;
		run->settled = false;
		if (status > 0 && smalti_export_watch(run, error))
			status = -1;
		if (status < 0)
			return -1;
	}
	return 0;
}

/* Keeps what is complete, however the rows ended. */
static int settle(struct smalti_export_run *run, int status, struct smalti_error *error)
{
	struct smalti_error ignored = SMALTI_NO_ERROR, *told = status ? &ignored : error;
	const bool last = status == 0;
	if (run->kind->settle(run, last, told))
		return -1;
	run->progress->complete = last;
	if (!run->settled || smalti_export_save(run, told) == 0)
		return status;
	run->progress->complete = false;
	return -1;
}

static int export_rows(struct smalti_export_run *run, struct smalti_error *error)
{
	SCOPED(smalti_features_close)
	struct smalti_features *reader = smalti_export_open(run, run->progress->rows, error);
	return reader ? settle(run, write_rows(run, reader, error), error) : -1;
}

/* Begins the format, writes rows in it, and ends it. */
static int with_format(struct smalti_export_run *run,
		       int (*write)(struct smalti_export_run *run, struct smalti_error *error),
		       struct smalti_error *error)
{
	smalti_writer_clean(run->options->output, false);
	SCOPED(free) void *state = run->state = smalti_calloc(1, run->kind->state_bytes, error);
	if (!state)
		return -1;
	int status = run->kind->begin ? run->kind->begin(run, error) : 0;
	if (!status)
		status = write(run, error);
	run->kind->end(run);
	return status;
}

/* Looks for what is wrong before anything is written. */
static int check_names(struct smalti_export_run *run, struct smalti_error *error)
{
	return run->kind->check ? run->kind->check(run, error) : 0;
}

static int export_all(struct smalti_export_run *run, struct smalti_error *error)
{
	SCOPED(smalti_hold_close)
	struct smalti_hold *hold = smalti_hold_open(run->options->output, "exports", error);
	if (!hold || smalti_export_load(run, error) < 0)
		return -1;
	if (run->progress->complete)
		return 0; /* since it was looked at */
	run->progress->before = run->progress->rows;
	return with_format(run, export_rows, error);
}

static int export_shared(struct smalti_export_run *run, struct smalti_error *error)
{
	int status = smalti_export_join(run, error);
	run->progress->before = run->progress->rows;
	if (status == 0 && run->progress->rows == 0) /* else another process has compared the names */
		status = check_names(run, error);
	if (status == 0)
		status = with_format(run, smalti_export_ranges, error);
	smalti_shared_list_close(run->list);
	return status;
}

static int check_directories(const struct smalti_export_options *options, struct smalti_error *error)
{
	struct stat from, to;
	if (stat(options->directory, &from) || stat(options->output, &to) || from.st_dev != to.st_dev ||
	    from.st_ino != to.st_ino)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s: is the directory of features itself; name another for what is "
			   "exported",
			   options->output);
}

static int export_opened(struct smalti_export_run *run, struct smalti_error *error)
{
	smalti_features_info(run->features, &run->info);
	run->dtype = (enum smalti_dtype)run->info.type;
	run->progress->total = run->info.rows;
	if (run->options->share)
		return export_shared(run, error);
	if (smalti_export_check_alone(run, error) < 0)
		return -1;
	const int found = run->options->restart ? 0 : smalti_export_load(run, error);
	if (found < 0)
		return -1;
	run->progress->before = run->progress->rows;
	if (run->progress->complete) {
		smalti_hold_clean(run->options->output);
		return 0;
	}
	if (!found && check_names(run, error) < 0)
		return -1;
	return export_all(run, error);
}

static int check_options(const struct smalti_export_options *options,
			 const struct smalti_export_progress *progress, struct smalti_error *error)
{
	if (smalti_check_given(options, "options of the export", error) ||
	    smalti_check_given(progress, "progress of the export", error) ||
	    smalti_check_text(options->directory, "directory of features", error) ||
	    smalti_check_text(options->output, "directory for what is exported", error) ||
	    smalti_check_range(options->format, 0, SMALTI_EXPORT_WEBDATASET, "format of the export", error) ||
	    smalti_check_range(options->shard_bytes, 0, INT64_MAX, "bytes of a file", error) ||
	    smalti_check_range(options->lease_seconds, 0, SMALTI_LEASE_MAX, "seconds of a lease", error))
		return -1;
	if (options->share && options->format != SMALTI_EXPORT_PIXART)
		return smalti_fail(error, SMALTI_EINVAL,
				   "processes cannot share an export to %s, whose files follow from the rows "
				   "before them: expected pixart",
				   kinds[options->format]->name);
	if (options->share && options->restart)
		return smalti_fail(error, SMALTI_EINVAL,
				   "an export that processes share cannot start again: remove %s while none "
				   "of them runs",
				   options->output);
	return check_directories(options, error);
}

int smalti_export(const struct smalti_export_options *options, struct smalti_export_progress *progress,
		  struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check_options(options, progress, error))
		return -1;
	struct smalti_export_options settled = *options;
	if (settled.shard_bytes == 0)
		settled.shard_bytes = SHARD_BYTES;
	*progress = (struct smalti_export_progress){.rows = 0};
	struct smalti_export_run run = {
	    .options = &settled, .kind = kinds[options->format], .progress = progress};
	run.features = smalti_features_open(options->directory, NULL, error);
	const int status = run.features ? export_opened(&run, error) : -1;
	smalti_features_close(run.features);
	return status;
}

enum { PIECE = 4096 };

static int check_finite(const float *wide, const uint16_t *narrow, int64_t count, struct smalti_error *error)
{
	for (int64_t i = 0; i < count; i++)
		if ((narrow[i] & 0x7c00) == 0x7c00)
			return smalti_fail(error, SMALTI_ECORRUPT,
					   "its features hold %g, which float16 has not", (double)wide[i]);
	return 0;
}

int smalti_export_values(const struct smalti_export_run *run, const void *values, int64_t count,
			 enum smalti_dtype to, smalti_export_sink *sink, void *user,
			 struct smalti_error *error)
{
	const int64_t size = smalti_dtype_bytes(run->dtype);
	if (to == run->dtype)
		return sink(user, values, count * size, error);
	for (int64_t first = 0; first < count; first += PIECE) {
		float wide[PIECE];
		uint16_t narrow[PIECE];
		const int64_t piece = count - first < PIECE ? count - first : PIECE;
		smalti_widen(run->dtype, (const char *)values + first * size, piece, wide);
		if (to != SMALTI_F32)
			smalti_narrow(to, wide, piece, narrow);
		if (to == SMALTI_F16 && check_finite(wide, narrow, piece, error))
			return -1;
		const void *data = to == SMALTI_F32 ? (const void *)wide : narrow;
		if (sink(user, data, piece * smalti_dtype_bytes(to), error))
			return -1;
	}
	return 0;
}
