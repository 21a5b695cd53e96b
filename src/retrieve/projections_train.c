/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/sealed.h"
#include "codelets/codelets.h"
#include "retrieve/index.h"
#include "retrieve/projection_data.h"
#include "retrieve/projection_step.h"
#include "retrieve/recall.h"
#include "samplers/draws.h"
#include "share/hold.h"
#include "train/schedule.h"

#include <math.h>

enum { TOGETHER = 32, CAPTIONS = SMALTI_INDEX_CAPTIONS, IMAGES = SMALTI_INDEX_IMAGES };

void smalti_projections_defaults(struct smalti_projections_options *options)
{
	*options = (struct smalti_projections_options)SMALTI_PROJECTIONS_DEFAULTS;
}

/* One call of smalti_projections_train(). */
struct run {
	const struct smalti_projections_options *options;
	struct smalti_session *session;
	struct smalti_projections_result *result;
	struct smalti_projection_data data;
	struct smalti_projection_trainer trainer;
	int64_t batch; /* at most the number of pairs */
	int64_t *order;
	int64_t epoch, used; /* in the order */
	float *rows;         /* of a batch */
	struct smalti_contrast_parts parts[TOGETHER];
	struct smalti_hold *hold; /* of the output */
	struct smalti_writer *log;
	float *weight[SMALTI_KINDS], *bias[SMALTI_KINDS]; /* of the written projections */
	struct smalti_projections projections;
};

static char *path_in(const struct run *run, const char *name, struct smalti_error *error)
{
	return smalti_format(error, "%s/%s", run->options->output, name);
}

static int64_t row_width(const struct run *run)
{
	return run->data.width[CAPTIONS] + run->data.width[IMAGES];
}

static int open_output(struct run *run, struct smalti_error *error)
{
	const char *output = run->options->output;
	run->hold = smalti_hold_open(output, "trains", error);
	if (!run->hold)
		return -1;
	const int found = smalti_find_in(output, smalti_projections_description, error);
	if (found)
		return found < 0 ? -1
				 : smalti_fail(error, SMALTI_EINVAL,
					       "%s: has projections already: name another directory", output);
	smalti_writer_clean(output, false);
	SCOPED(free) char *path = path_in(run, "log.jsonl", error);
	run->log = path ? smalti_writer_open(path, error) : NULL;
	return run->log ? 0 : -1;
}

static int open_all(struct run *run, struct smalti_error *error)
{
	const struct smalti_projections_options *o = run->options;
	struct smalti_projections_result *result = run->result;
	if (open_output(run, error) < 0 ||
	    smalti_projection_data_open(&run->data, o, &result->progress, error) < 0)
		return -1;
	result->trained = run->data.trained_count;
	result->held_out = run->data.held_out_count;
	run->batch = smalti_min(o->batch, result->trained);
	run->order = smalti_calloc(result->trained, sizeof(*run->order), error);
	run->rows = smalti_calloc(run->batch, row_width(run) * (int64_t)sizeof(*run->rows), error);
	run->used = result->trained;
	if (!run->order || !run->rows)
		return -1;
	return smalti_projection_trainer_open(&run->trainer, run->session, o->dim, run->data.width,
					      o->weight_decay, o->seed, error);
}

/* Reads a batch. The rest of an epoch's order that is no batch is left out. */
static int read_batch(struct run *run, struct smalti_error *error)
{
	if (run->used + run->batch > run->data.trained_count) {
		smalti_draw_order(
		    smalti_stream_seed(run->options->seed, SMALTI_STREAM_ORDER, (uint64_t)run->epoch++, 0),
		    run->data.trained_count, run->order);
		run->used = 0;
	}
	for (int64_t i = 0; i < run->batch; i++)
		if (smalti_projection_data_row(&run->data, run->data.trained[run->order[run->used++]],
					       run->rows + i * row_width(run), error) < 0)
			return -1;
	return 0;
}

static void log_object(const struct run *run, cJSON *object)
{
	SCOPED(free) char *text = cJSON_PrintUnformatted(object);
	if (text)
		fprintf(smalti_writer_stream(run->log), "%s\n", text);
	cJSON_Delete(object);
}

static double rate_at(const struct run *run, int64_t step)
{
	const struct smalti_rate_schedule schedule = {SMALTI_SCHEDULE_COSINE, run->options->warmup,
						      run->options->steps};
	return run->options->rate * smalti_schedule_factor(&schedule, step);
}

/* Waits for the inserted steps; `first`: the first of these. */
static int end_steps(struct run *run, int64_t first, struct smalti_error *error)
{
	struct smalti_projections_progress *progress = &run->result->progress;
	const struct smalti_projections_options *o = run->options;
	smalti_task_group_wait(run->trainer.task_group);
	if (smalti_task_group_status(run->trainer.task_group, error) < 0)
		return -1;
	for (int64_t step = first; step < progress->step; step++) {
		progress->loss = (double)run->parts[step % TOGETHER].loss;
		if (!isfinite(progress->loss))
			return smalti_fail(error, SMALTI_ECORRUPT,
					   "the loss of step %" PRId64 " is not finite: lower the rate",
					   step + 1);
		cJSON *line = cJSON_CreateObject();
		cJSON_AddNumberToObject(line, "step", (double)(step + 1));
		cJSON_AddNumberToObject(line, "loss", progress->loss);
		cJSON_AddNumberToObject(line, "lr", rate_at(run, step));
		log_object(run, line);
	}
	return o->on_progress && !o->on_progress(o->user, progress)
		   ? smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped", o->output)
		   : 0;
}

static int train(struct run *run, struct smalti_error *error)
{
	struct smalti_projections_progress *progress = &run->result->progress;
	int64_t first = 0;
	int status = 0;
	for (progress->steps = run->options->steps; progress->step < progress->steps && status == 0;) {
		const int64_t step = progress->step;
		if (read_batch(run, error) < 0 ||
		    smalti_projection_step(&run->trainer, run->rows, run->batch, step + 1, rate_at(run, step),
					   &run->parts[step % TOGETHER], error) < 0)
			return -1;
		progress->step++;
		if (progress->step % TOGETHER == 0 || progress->step == progress->steps) {
			status = end_steps(run, first, error);
			first = progress->step;
		}
	}
	return status;
}

static int take(const struct run *run, int tensor, float *values, struct smalti_error *error)
{
	const struct smalti_parameter *parameter = &run->trainer.list[tensor];
	smalti_insert(deliver, run->trainer.task_group, (.x = parameter->value), .count = parameter->count,
		      .sink = smalti_copy_floats, .user = values);
	smalti_task_group_wait(run->trainer.task_group);
	return smalti_task_group_status(run->trainer.task_group, error);
}

/* Makes the whitening a part of the projection: W·M·(x − mean) = (W·M)·x + bias. M is 0 above its diagonal,
 * so that a row can be multiplied in place. */
static void fold(const struct smalti_whitening *whitening, int64_t dim, float *weight, float *bias)
{
	const int64_t width = whitening->dim;
	for (int64_t row = 0; row < dim; row++, weight += width) {
		double offset = 0;
		for (int64_t j = 0; j < width; j++) {
			double sum = 0;
			for (int64_t i = j; i < width; i++)
				sum += (double)weight[i] * (double)whitening->matrix[i * width + j];
			weight[j] = (float)sum;
			offset -= (double)weight[j] * (double)whitening->mean[j];
		}
		bias[row] = (float)offset;
	}
}

static int take_projections(struct run *run, struct smalti_error *error)
{
	const int64_t dim = run->options->dim;
	float temperature = 0;
	run->projections = (struct smalti_projections){.dim = dim, .caption = run->data.caption};
	for (int kind = 0; kind < SMALTI_KINDS; kind++) {
		run->weight[kind] = smalti_calloc(dim * run->data.width[kind], sizeof(float), error);
		run->bias[kind] = smalti_calloc(dim, sizeof(float), error);
		if (!run->weight[kind] || !run->bias[kind] || take(run, kind, run->weight[kind], error) < 0)
			return -1;
		fold(&run->data.whitening[kind], dim, run->weight[kind], run->bias[kind]);
		run->projections.of[kind] = (struct smalti_projection){
		    run->data.width[kind], run->weight[kind], run->bias[kind], run->data.model[kind]};
	}
	if (take(run, SMALTI_TEMPERATURE, &temperature, error) < 0)
		return -1;
	run->result->temperature = exp((double)temperature);
	return 0;
}

/* Projects all held-out vectors by the written projections. */
static int project_held_out(const struct run *run, float *units[SMALTI_KINDS], struct smalti_error *error)
{
	const int64_t dim = run->options->dim;
	double *vector = run->data.vector;
	SCOPED(free) double *projected = smalti_calloc(dim, sizeof(*projected), error);
	for (int64_t i = 0; i < run->data.held_out_count; i++) {
		if (!projected ||
		    smalti_projection_data_row(&run->data, run->data.held_out[i], run->data.row, error) < 0)
			return -1;
		for (int64_t j = 0; j < row_width(run); j++)
			vector[j] = (double)run->data.row[j];
		for (int kind = 0; kind < SMALTI_KINDS; kind++) {
			smalti_projections_apply(&run->projections, (enum smalti_index_kind)kind,
						 vector + (kind == IMAGES ? run->data.width[CAPTIONS] : 0),
						 projected);
			(void)smalti_vector_normalise(dim, projected, units[kind] + i * dim);
		}
	}
	return 0;
}

/* Computes the mean over the pairs, in batches as in training, in the features' order. */
static int held_out_loss(const struct run *run, float *const units[SMALTI_KINDS], double *loss,
			 struct smalti_error *error)
{
	const int64_t dim = run->options->dim, count = run->data.held_out_count;
	const float temperature = (float)log(run->result->temperature);
	SCOPED(free) double *lse = smalti_calloc(run->options->batch, 2 * (int64_t)sizeof(*lse), error);
	if (!lse)
		return -1;
	*loss = 0;
	for (int64_t first = 0; first < count; first += run->options->batch) {
		const int64_t some = smalti_min(run->options->batch, count - first);
		const float *x = units[CAPTIONS] + first * dim, *y = units[IMAGES] + first * dim;
		const struct smalti_contrast contrast = {
		    .rows = some, .batch = some, .dim = dim, .temperature = temperature};
		if (smalti_contrast_sums(&contrast, x, y, lse, error) < 0 ||
		    smalti_contrast_sums(&contrast, y, x, lse + some, error) < 0)
			return -1;
		for (int64_t i = 0; i < some; i++) {
			double product = 0;
			for (int64_t j = 0; j < dim; j++)
				product += (double)x[i * dim + j] * (double)y[i * dim + j];
			*loss += (0.5 * (lse[i] + lse[some + i]) - run->result->temperature * product) /
				 (double)count;
		}
	}
	return 0;
}

static int measure(const struct run *run, const float *queries, const float *vectors,
		   struct smalti_recall *recall, struct smalti_error *error)
{
	const int64_t count = run->data.held_out_count, top = smalti_recall_depths[SMALTI_RECALL_DEPTHS - 1];
	const struct smalti_index index = {.info = {.items = count, .dim = run->options->dim},
					   .vectors = vectors};
	SCOPED(free) struct smalti_found *found = smalti_calloc(count, top * (int64_t)sizeof(*found), error);
	*recall = (struct smalti_recall){.mrr = 0};
	if (!found || smalti_index_search(&index, run->session, queries, count, top, found, error) < 0)
		return -1;
	for (int64_t i = 0; i < count; i++)
		for (int64_t place = 0; place < top; place++)
			if (found[i * top + place].number == i)
				smalti_recall_add(recall, place);
	smalti_recall_end(recall, count);
	return 0;
}

/* Returns the held-out measures. */
static cJSON *measured(const struct run *run)
{
	const struct smalti_projections_result *result = run->result;
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "pairs", (double)result->held_out);
	cJSON_AddNumberToObject(object, "loss", result->held_out_loss);
	smalti_recall_write(object, "images by text", &result->images_by_text);
	smalti_recall_write(object, "texts by image", &result->texts_by_image);
	return object;
}

static int evaluate(const struct run *run, struct smalti_error *error)
{
	struct smalti_projections_result *result = run->result;
	const int64_t bytes = run->options->dim * (int64_t)sizeof(float);
	if (run->data.held_out_count == 0) {
		const struct smalti_recall none = {{NAN, NAN, NAN}, NAN};
		result->held_out_loss = NAN;
		result->images_by_text = result->texts_by_image = none;
		return 0;
	}
	SCOPED(free) float *captions = smalti_calloc(run->data.held_out_count, bytes, error);
	SCOPED(free) float *images = smalti_calloc(run->data.held_out_count, bytes, error);
	float *units[] = {[CAPTIONS] = captions, [IMAGES] = images};
	if (!captions || !images || project_held_out(run, units, error) < 0 ||
	    held_out_loss(run, units, &result->held_out_loss, error) < 0 ||
	    measure(run, captions, images, &result->images_by_text, error) < 0 ||
	    measure(run, images, captions, &result->texts_by_image, error) < 0)
		return -1;
	cJSON *line = cJSON_CreateObject();
	cJSON_AddNumberToObject(line, "step", (double)result->progress.step);
	cJSON_AddItemToObject(line, "held_out", measured(run));
	log_object(run, line);
	return 0;
}

/* Describes the data and the options of the training. */
static void describe_training(const struct run *run, cJSON *description)
{
	const struct smalti_projections_options *o = run->options;
	cJSON *object = cJSON_AddObjectToObject(description, "training");
	cJSON *features = cJSON_AddArrayToObject(object, "features");
	for (int64_t i = 0; i < o->feature_count; i++) {
		SCOPED(cJSON_Delete) cJSON *name = cJSON_CreateObject();
		if (smalti_json_add_text(name, "name", o->features[i]))
			cJSON_AddItemToArray(features, cJSON_DetachItemFromObject(name, "name"));
	}
	const struct {
		const char *name;
		double value;
	} numbers[] = {{"pairs", (double)run->result->trained},
		       {"steps", (double)o->steps},
		       {"batch", (double)run->batch},
		       {"warmup", (double)o->warmup},
		       {"lr", o->rate},
		       {"weight_decay", o->weight_decay},
		       {"held_out", o->held_out},
		       {"loss", run->result->progress.loss},
		       {"temperature", run->result->temperature}};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		cJSON_AddNumberToObject(object, numbers[i].name, numbers[i].value);
	char seed[32];
	snprintf(seed, sizeof(seed), "%" PRIu64, o->seed);
	cJSON_AddStringToObject(object, "seed", seed);
	if (run->result->held_out)
		cJSON_AddItemToObject(description, "held_out", measured(run));
}

/* Writes the description last: without one the directory may be filled again. */
static int write_all(struct run *run, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *description = cJSON_CreateObject();
	SCOPED(free) char *path = path_in(run, smalti_projections_description, error);
	struct smalti_writer *log = run->log;
	run->log = NULL;
	if (smalti_writer_commit(log, error) < 0 || !path ||
	    smalti_projections_write(&run->projections, run->options->output, error) < 0)
		return -1;
	cJSON_AddStringToObject(description, "format", SMALTI_PROJECTIONS_FORMAT);
	cJSON_AddNumberToObject(description, "version", SMALTI_PROJECTIONS_VERSION);
	describe_training(run, description);
	if (smalti_projections_describe(&run->projections, description, error) < 0 ||
	    smalti_files_add(description, run->options->output, smalti_projections_file, error) < 0)
		return -1;
	return smalti_sealed_write(path, description, error);
}

static void close_all(struct run *run)
{
	smalti_projection_trainer_close(&run->trainer);
	smalti_projection_data_close(&run->data);
	smalti_writer_abort(run->log);
	for (int kind = 0; kind < SMALTI_KINDS; kind++) {
		free(run->weight[kind]);
		free(run->bias[kind]);
	}
	free(run->order);
	free(run->rows);
	smalti_hold_close(run->hold);
}

static int check(const struct smalti_projections_options *o, struct smalti_error *error)
{
	const struct {
		const char *what;
		int64_t value, min, max;
	} counts[] = {
	    {"number of directories of features", o->feature_count, 1, 1 << 12},
	    {"width of the projections", o->dim, 1, 1 << 16},
	    {"steps", o->steps, 1, INT32_MAX},
	    {"batch", o->batch, 2, 1 << 16},
	    {"warm-up", o->warmup, 0, INT32_MAX},
	};
	const struct {
		const char *what;
		double value, max;
	} numbers[] = {{"learning rate", o->rate, 1e6},
		       {"weight decay", o->weight_decay, 1e6},
		       {"share to hold out", o->held_out, 0.9}};
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		if (smalti_check_range(counts[i].value, counts[i].min, counts[i].max, counts[i].what, error) <
		    0)
			return -1;
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (!(numbers[i].value >= 0 && numbers[i].value <= numbers[i].max))
			return smalti_fail(error, SMALTI_EINVAL, "%s: expected 0 to %g, found %g",
					   numbers[i].what, numbers[i].max, numbers[i].value);
	if (smalti_check_given(o->features, "features", error) < 0)
		return -1;
	for (int64_t i = 0; i < o->feature_count; i++)
		if (smalti_check_text(o->features[i], "directory of features", error) < 0)
			return -1;
	return smalti_check_text(o->output, "directory for the projections", error);
}

int smalti_projections_train(struct smalti_session *session, const struct smalti_projections_options *options,
			     struct smalti_projections_result *result, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(session, "session", error) < 0 ||
	    smalti_check_given(options, "options", error) < 0 ||
	    smalti_check_given(result, "result to fill", error) < 0 || check(options, error) < 0)
		return -1;
	*result = (struct smalti_projections_result){.held_out_loss = NAN};
	struct run run = {.options = options, .session = session, .result = result, .data = {.file = -1}};
	int status = open_all(&run, error);
	if (status == 0)
		status = train(&run, error);
	if (status == 0 &&
	    (take_projections(&run, error) < 0 || evaluate(&run, error) < 0 || write_all(&run, error) < 0))
		status = -1;
	close_all(&run);
	return status;
}
