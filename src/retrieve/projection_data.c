/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/projection_data.h"
#include "retrieve/index.h"
#include "retrieve/vectors.h"

#include <math.h>
#include <xxhash.h>

enum { AHEAD = 64, CAPTIONS = SMALTI_INDEX_CAPTIONS, IMAGES = SMALTI_INDEX_IMAGES };

/* A directory that is being read. */
struct reading {
	struct smalti_projection_data *data;
	const struct smalti_projections_options *options;
	struct smalti_projections_progress *progress;
	const char *directory;
	struct smalti_features *features;
	struct smalti_features_info info;
	int caption;
};

static int64_t row_width(const struct smalti_projection_data *data)
{
	return data->width[CAPTIONS] + data->width[IMAGES];
}

/* Checks the model, which the first directory decides. */
static int check_kind(struct reading *r, int kind, struct smalti_error *error)
{
	struct smalti_projection_data *data = r->data;
	const int64_t width = smalti_vector_dim(&r->info, (enum smalti_index_kind)kind);
	if (width == 0)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no features of %s", r->directory,
				   smalti_index_kinds[kind]);
	SCOPED(cJSON_Delete)
	cJSON *model = smalti_vector_model(&r->info, (enum smalti_index_kind)kind, error);
	if (!model)
		return -1;
	if (!data->model[kind]) {
		data->model[kind] = cJSON_Duplicate(model, true);
		data->width[kind] = width;
		return smalti_vector_moments_open(&data->moments[kind], width, error);
	}
	const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(model, "model"));
	const char *first =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(data->model[kind], "model"));
	if (own && first && strcmp(own, first) == 0 && width == data->width[kind])
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "%s: its %s are of the model %s, those of %s of %s: train on features of one model", r->directory,
	    smalti_index_kinds[kind], own ? own : "(unknown)", r->options->features[0],
	    first ? first : "(unknown)");
}

static int open_directory(struct reading *r, struct smalti_error *error)
{
	struct smalti_features_options options;
	smalti_features_defaults(&options);
	options.prefetch = AHEAD;
	r->features = smalti_features_open(r->directory, &options, error);
	if (!r->features)
		return -1;
	smalti_features_info(r->features, &r->info);
	r->progress->total += r->info.rows;
	for (int kind = 0; kind < SMALTI_KINDS; kind++)
		if (check_kind(r, kind, error) < 0)
			return -1;
	r->caption = smalti_vector_caption(&r->info, r->directory, r->options->caption, error);
	if (r->caption < 0)
		return -1;
	struct smalti_projection_data *data = r->data;
	if (!data->caption)
		data->caption = smalti_format(error, "%s", r->info.captions[r->caption]);
	if (!data->vector)
		data->vector = smalti_calloc(row_width(data), sizeof(*data->vector), error);
	if (!data->row)
		data->row = smalti_calloc(row_width(data), sizeof(*data->row), error);
	return data->caption && data->vector && data->row ? 0 : -1;
}

/* Decides by the key alone whether an item is held out, so that more items change nothing. */
static bool is_held_out(const struct reading *r, const char *key)
{
	const double place = (double)(XXH3_64bits(key, strlen(key)) >> 11) * 0x1p-53;
	return place < r->options->held_out;
}

static int write_row(struct smalti_projection_data *data, int64_t row, struct smalti_error *error)
{
	const int64_t bytes = row_width(data) * (int64_t)sizeof(*data->row);
	return smalti_write_at(data->file, data->row, bytes, row * bytes) == 0
		   ? 0
		   : smalti_fail_errno(error, "the vectors to train on cannot be written");
}

int smalti_projection_data_row(const struct smalti_projection_data *data, int64_t row, float *values,
			       struct smalti_error *error)
{
	const int64_t bytes = row_width(data) * (int64_t)sizeof(*values);
	return smalti_read_at(data->file, values, bytes, row * bytes) == bytes
		   ? 0
		   : smalti_fail_errno(error, "the vectors to train on cannot be read");
}

/* Returns 1 if an equal caption is held out already, as both images would be right: the item is left out. */
static int is_repeated(struct reading *r, const struct smalti_features_row *row, struct smalti_error *error)
{
	const struct smalti_features_text *text = &row->texts[r->caption];
	const uint64_t digest = XXH3_64bits(text->ids, (size_t)text->tokens * sizeof(*text->ids));
	const int added = smalti_set_add(&r->data->captions, digest, error);
	return added < 0 ? -1 : !added;
}

static int add_pair(struct reading *r, const struct smalti_features_row *row, struct smalti_error *error)
{
	struct smalti_projection_data *data = r->data;
	double *image = data->vector + data->width[CAPTIONS];
	if (!smalti_vector_of(&r->info, SMALTI_INDEX_CAPTIONS, r->caption, row, data->vector) ||
	    !smalti_vector_of(&r->info, SMALTI_INDEX_IMAGES, 0, row, image)) {
		r->progress->without++;
		return 0;
	}
	const bool held_out = is_held_out(r, row->key);
	const int repeated = held_out ? is_repeated(r, row, error) : 0;
	if (repeated)
		return repeated < 0 ? -1 : 0;
	int64_t **rows = held_out ? &data->held_out : &data->trained;
	int64_t *count = held_out ? &data->held_out_count : &data->trained_count;
	if (smalti_grow(rows, *count, sizeof(**rows), error) < 0)
		return -1;
	(*rows)[(*count)++] = data->count;
	for (int64_t i = 0; i < row_width(data); i++)
		data->row[i] = (float)data->vector[i];
	if (!held_out) {
		smalti_vector_moments_add(&data->moments[CAPTIONS], data->vector);
		smalti_vector_moments_add(&data->moments[IMAGES], image);
	}
	return write_row(data, data->count++, error);
}

/* Reads a row: 1; 0 after the last row. */
static int read_row(struct reading *r, struct smalti_error *error)
{
	struct smalti_features_row row;
	struct smalti_error cause = SMALTI_NO_ERROR;
	const struct smalti_projections_options *o = r->options;
	const int found = smalti_features_next(r->features, &row, &cause);
	if (found == 0)
		return 0;
	if (found < 0 && !smalti_is_of_input(cause.code))
		return smalti_pass(error, &cause);
	r->progress->rows++;
	if (found < 0) {
		r->progress->damaged++;
		if (o->damaged)
			o->damaged(o->user, &cause);
	} else if (add_pair(r, &row, error) < 0) {
		return -1;
	}
	return o->on_progress && !o->on_progress(o->user, r->progress)
		   ? smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped", o->output)
		   : 1;
}

static int read_directory(struct reading *r, struct smalti_error *error)
{
	int status = open_directory(r, error);
	if (status == 0)
		while ((status = read_row(r, error)) > 0)
			;
	smalti_features_close(r->features);
	return status;
}

static int whiten_row(struct smalti_projection_data *data, int64_t row, struct smalti_error *error)
{
	if (smalti_projection_data_row(data, row, data->row, error) < 0)
		return -1;
	for (int64_t i = 0; i < row_width(data); i++)
		data->vector[i] = (double)data->row[i];
	double *vector = data->vector;
	for (int kind = 0; kind < SMALTI_KINDS; vector += data->width[kind++])
		smalti_whitening_apply(data->width[kind], data->whitening[kind].mean,
				       data->whitening[kind].matrix, vector);
	for (int64_t i = 0; i < row_width(data); i++)
		data->row[i] = (float)data->vector[i];
	return write_row(data, row, error);
}

static int whiten(struct smalti_projection_data *data, struct smalti_error *error)
{
	for (int kind = 0; kind < SMALTI_KINDS; kind++)
		if (smalti_whitening_make(&data->whitening[kind], &data->moments[kind], error) < 0)
			return -1;
	for (int64_t i = 0; i < data->trained_count; i++)
		if (whiten_row(data, data->trained[i], error) < 0)
			return -1;
	return 0;
}

int smalti_projection_data_open(struct smalti_projection_data *data,
				const struct smalti_projections_options *options,
				struct smalti_projections_progress *progress, struct smalti_error *error)
{
	*data = (struct smalti_projection_data){.file = smalti_open_unlinked(options->output, error)};
	int status = data->file < 0 ? -1 : 0;
	for (int64_t i = 0; i < options->feature_count && status == 0; i++) {
		struct reading reading = {.data = data,
					  .options = options,
					  .progress = progress,
					  .directory = options->features[i]};
		status = read_directory(&reading, error);
	}
	if (status < 0)
		return -1;
	if (data->trained_count < 2)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: %" PRId64 " of %" PRId64
		    " rows have a caption and an image and are not held out: training takes two",
		    options->features[0], data->trained_count, progress->rows);
	return whiten(data, error);
}

void smalti_projection_data_close(struct smalti_projection_data *data)
{
	if (data->file >= 0)
		close(data->file);
	for (int kind = 0; kind < SMALTI_KINDS; kind++) {
		cJSON_Delete(data->model[kind]);
		smalti_vector_moments_close(&data->moments[kind]);
		smalti_whitening_free(&data->whitening[kind]);
	}
	smalti_set_free(&data->captions);
	free(data->trained);
	free(data->held_out);
	free(data->caption);
	free(data->vector);
	free(data->row);
}
