/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sealed.h"
#include "retrieve/index.h"
#include "retrieve/whitening.h"
#include "share/hold.h"

enum { AHEAD = 64 };

/* One call of smalti_index_make(). */
struct making {
	const struct smalti_index_options *options;
	struct smalti_index_progress *progress;
	struct smalti_hold *hold; /* of the output */
	struct smalti_features *features;
	struct smalti_features_info info;
	int caption;
	cJSON *described;                      /* the projections' description */
	struct smalti_projections projections; /* without: no file */
	int64_t width, dim;                    /* of the features' vectors, and the index's */
	bool whitened;
	int vectors; /* a file without a name: the vectors in their order, before they are whitened */
	double *vector, *projected;
	float *unit;
	struct smalti_writer *items;
	struct smalti_vector_moments moments; /* of the vectors that are whitened */
	struct smalti_whitening whitening;
};

static char *path_in(const struct making *m, const char *name, struct smalti_error *error)
{
	return smalti_format(error, "%s/%s", m->options->output, name);
}

static int open_features(struct making *m, struct smalti_error *error)
{
	const struct smalti_index_options *o = m->options;
	struct smalti_features_options options;
	smalti_features_defaults(&options);
	options.prefetch = AHEAD;
	m->features = smalti_features_open(o->features, &options, error);
	if (!m->features)
		return -1;
	smalti_features_info(m->features, &m->info);
	m->progress->total = m->info.rows;
	m->width = smalti_vector_dim(&m->info, o->kind);
	if (m->width == 0)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no features of %s", o->features,
				   smalti_index_kinds[o->kind]);
	m->caption = o->kind == SMALTI_INDEX_IMAGES
			 ? 0
			 : smalti_vector_caption(&m->info, o->features, o->caption, error);
	return m->caption < 0 ? -1 : 0;
}

/* Opens projections, which have to be of the features' model. */
static int open_projections(struct making *m, struct smalti_error *error)
{
	const struct smalti_index_options *o = m->options;
	m->dim = m->width;
	m->whitened = o->kind == SMALTI_INDEX_IMAGES && !o->projections;
	if (!o->projections)
		return 0;
	if (smalti_projections_open(&m->projections, o->projections, &m->described, error) < 0)
		return -1;
	m->dim = m->projections.dim;
	m->projected = smalti_calloc(m->dim, sizeof(*m->projected), error);
	SCOPED(cJSON_Delete)
	cJSON *model = m->projected ? smalti_vector_model(&m->info, o->kind, error) : NULL;
	return model ? smalti_model_is(model, o->features, m->projections.of[o->kind].model, o->projections,
				       error)
		     : -1;
}

/* Opens an output without a description, which is written last. */
static int open_output(struct making *m, struct smalti_error *error)
{
	const char *output = m->options->output;
	m->hold = smalti_hold_open(output, "makes an index", error);
	if (!m->hold)
		return -1;
	const int found = smalti_find_in(output, smalti_index_description, error);
	if (found)
		return found < 0 ? -1
				 : smalti_fail(error, SMALTI_EINVAL,
					       "%s: is an index already: name another directory", output);
	smalti_writer_clean(output, false);
	SCOPED(free) char *path = path_in(m, smalti_index_files[SMALTI_INDEX_ITEMS], error);
	m->items = path ? smalti_writer_open(path, error) : NULL;
	m->vectors = m->items ? smalti_open_unlinked(output, error) : -1;
	return m->vectors < 0 ? -1 : 0;
}

static int open_all(struct making *m, struct smalti_error *error)
{
	if (open_features(m, error) < 0 || open_projections(m, error) < 0 || open_output(m, error) < 0)
		return -1;
	m->vector = smalti_calloc(m->width, sizeof(*m->vector), error);
	m->unit = smalti_calloc(m->dim, sizeof(*m->unit), error);
	if (!m->vector || !m->unit)
		return -1;
	return m->whitened ? smalti_vector_moments_open(&m->moments, m->dim, error) : 0;
}

static int write_item(struct making *m, const struct smalti_features_row *row, struct smalti_error *error)
{
	SCOPED(free) char *key = smalti_index_key_text(row->key, error);
	const int64_t bytes = m->dim * (int64_t)sizeof(*m->unit);
	if (!key)
		return -1;
	fprintf(smalti_writer_stream(m->items), "{\"index\":%" PRId64 "%s\n", row->index, key);
	if (smalti_write_at(m->vectors, m->unit, bytes, m->progress->items * bytes) < 0)
		return smalti_fail_errno(error, "%s: its vectors cannot be written", m->options->output);
	m->progress->items++;
	return 0;
}

/* Takes a row's vector. Whitening waits until all have been read. */
static bool take_vector(struct making *m, const struct smalti_features_row *row)
{
	if (!smalti_vector_of(&m->info, m->options->kind, m->caption, row, m->vector))
		return false;
	if (m->projected) {
		smalti_projections_apply(&m->projections, m->options->kind, m->vector, m->projected);
		return smalti_vector_normalise(m->dim, m->projected, m->unit);
	}
	if (!m->whitened)
		return smalti_vector_normalise(m->dim, m->vector, m->unit);
	smalti_vector_moments_add(&m->moments, m->vector);
	for (int64_t i = 0; i < m->dim; i++)
		m->unit[i] = (float)m->vector[i];
	return true;
}

static int watch(const struct making *m, struct smalti_error *error)
{
	const struct smalti_index_options *o = m->options;
	return o->on_progress && !o->on_progress(o->user, m->progress)
		   ? smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped", o->output)
		   : 0;
}

/* Adds a row: 1; 0 after the last row. */
static int add_row(struct making *m, struct smalti_error *error)
{
	struct smalti_features_row row;
	struct smalti_error cause = SMALTI_NO_ERROR;
	const struct smalti_index_options *o = m->options;
	const int found = smalti_features_next(m->features, &row, &cause);
	if (found == 0)
		return 0;
	if (found < 0 && !smalti_is_of_input(cause.code))
		return smalti_pass(error, &cause);
	m->progress->rows++;
	if (found < 0) {
		m->progress->damaged++;
		if (o->damaged)
			o->damaged(o->user, &cause);
	} else if (!take_vector(m, &row)) {
		m->progress->without++;
	} else if (write_item(m, &row, error) < 0) {
		return -1;
	}
	return watch(m, error) < 0 ? -1 : 1;
}

static int add_rows(struct making *m, struct smalti_error *error)
{
	int status;
	while ((status = add_row(m, error)) > 0)
		;
	if (status == 0 && m->progress->items == 0)
		return smalti_fail(
		    error, SMALTI_EINVAL, "%s: none of its %" PRId64 " rows has features of %s",
		    m->options->features, m->progress->rows, smalti_index_kinds[m->options->kind]);
	return status;
}

static int whiten(struct making *m, int64_t number, struct smalti_error *error)
{
	const int64_t bytes = m->dim * (int64_t)sizeof(*m->unit);
	if (smalti_read_at(m->vectors, m->unit, bytes, number * bytes) != bytes)
		return smalti_fail_errno(error, "%s: its vectors cannot be read", m->options->output);
	for (int64_t i = 0; i < m->dim; i++)
		m->vector[i] = (double)m->unit[i];
	smalti_whitening_apply(m->dim, m->whitening.mean, m->whitening.matrix, m->vector);
	(void)smalti_vector_normalise(m->dim, m->vector, m->unit); /* an image equal to the mean: zeros */
	if (smalti_write_at(m->vectors, m->unit, bytes, number * bytes) < 0)
		return smalti_fail_errno(error, "%s: its vectors cannot be written", m->options->output);
	return 0;
}

static int whiten_all(struct making *m, struct smalti_error *error)
{
	if (smalti_whitening_make(&m->whitening, &m->moments, error) < 0)
		return -1;
	for (int64_t i = 0; i < m->progress->items; i++)
		if (whiten(m, i, error) < 0 || watch(m, error) < 0)
			return -1;
	return 0;
}

struct source {
	const struct making *making;
	const float *whole[3]; /* NULL: the vectors */
	float *block;
};

static const void *piece(void *user, int tensor, int64_t first, int64_t count, struct smalti_error *error)
{
	const struct source *source = user;
	const int64_t size = (int64_t)sizeof(*source->block);
	if (source->whole[tensor])
		return source->whole[tensor] + first;
	if (smalti_read_at(source->making->vectors, source->block, count * size, first * size) ==
	    count * size)
		return source->block;
	smalti_fail_errno(error, "%s: its vectors cannot be read", source->making->options->output);
	return NULL;
}

static int write_vectors(struct making *m, struct smalti_error *error)
{
	const struct smalti_tensor_view views[] = {
	    {.name = "vectors", .dtype = SMALTI_F32, .rank = 2, .shape = {m->progress->items, m->dim}},
	    {.name = "mean", .dtype = SMALTI_F32, .rank = 1, .shape = {m->dim}},
	    {.name = "whitening", .dtype = SMALTI_F32, .rank = 2, .shape = {m->dim, m->dim}},
	};
	SCOPED(free) char *path = path_in(m, smalti_index_files[SMALTI_INDEX_VECTORS], error);
	SCOPED(free) float *block = smalti_aligned_alloc(SMALTI_SOURCE_ELEMENTS, sizeof(*block), error);
	struct source source = {m, {NULL, m->whitening.mean, m->whitening.matrix}, block};
	if (!path || !block)
		return -1;
	return smalti_safetensors_stream(path, views, m->whitening.matrix ? 3 : 1, piece, &source, error);
}

static int describe(const struct making *m, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	SCOPED(free) char *path = path_in(m, smalti_index_description, error);
	cJSON *model = path ? smalti_vector_model(&m->info, m->options->kind, error) : NULL;
	if (!model)
		return -1;
	cJSON_AddStringToObject(object, "format", SMALTI_INDEX_FORMAT);
	cJSON_AddNumberToObject(object, "version", SMALTI_INDEX_VERSION);
	cJSON_AddStringToObject(object, "kind", smalti_index_kinds[m->options->kind]);
	(void)smalti_json_add_text(object, "features", m->options->features);
	if (m->options->kind == SMALTI_INDEX_CAPTIONS)
		cJSON_AddStringToObject(object, "caption", m->info.captions[m->caption]);
	cJSON_AddNumberToObject(object, "items", (double)m->progress->items);
	cJSON_AddNumberToObject(object, "dim", (double)m->dim);
	cJSON_AddItemToObject(object, "model", model);
	for (int i = 0; i < SMALTI_INDEX_FILES; i++)
		if (smalti_files_add(object, m->options->output, smalti_index_files[i], error) < 0)
			return -1;
	if (m->projected &&
	    (smalti_projections_describe(&m->projections, object, error) < 0 ||
	     smalti_files_add(object, m->options->output, smalti_projections_file, error) < 0))
		return -1;
	return smalti_sealed_write(path, object, error);
}

/* Writes the projections after their last use. */
static int write_projections(const struct making *m, struct smalti_error *error)
{
	const int status = smalti_projections_write(&m->projections, m->options->output, error);
	return smalti_safetensors_check(m->projections.file, error) < 0 ? -1 : status;
}

static int make(struct making *m, struct smalti_error *error)
{
	if (open_all(m, error) < 0 || add_rows(m, error) < 0 || (m->whitened && whiten_all(m, error) < 0) ||
	    write_vectors(m, error) < 0 || (m->projected && write_projections(m, error) < 0))
		return -1;
	struct smalti_writer *items = m->items;
	m->items = NULL;
	return smalti_writer_commit(items, error) < 0 ? -1 : describe(m, error);
}

static void close_all(struct making *m)
{
	smalti_features_close(m->features);
	smalti_writer_abort(m->items);
	if (m->vectors >= 0)
		close(m->vectors);
	smalti_vector_moments_close(&m->moments);
	smalti_whitening_free(&m->whitening);
	smalti_projections_close(&m->projections);
	cJSON_Delete(m->described);
	free(m->projected);
	free(m->vector);
	free(m->unit);
	smalti_hold_close(m->hold);
}

int smalti_index_make(const struct smalti_index_options *options, struct smalti_index_progress *progress,
		      struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(options, "options", error) < 0 ||
	    smalti_check_given(progress, "progress to fill", error) < 0 ||
	    smalti_check_text(options->features, "directory of features", error) < 0 ||
	    smalti_check_text(options->output, "directory for the index", error) < 0 ||
	    smalti_check_range(options->kind, 0, SMALTI_INDEX_IMAGES, "kind of index", error) < 0)
		return -1;
	*progress = (struct smalti_index_progress){0};
	struct making making = {.options = options, .progress = progress, .vectors = -1};
	const int status = make(&making, error);
	close_all(&making);
	return status;
}
