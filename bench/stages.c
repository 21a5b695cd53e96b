/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stages.h"

#include "base/base.h"
#include "base/clock.h"
#include "bench/memory.h"
#include "bench/peak.h"
#include "bench/stage_parts.h"
#include "bench/statistics.h"
#include "rt/session.h"

#include <math.h>
#include <stdlib.h>

static const struct smalti_stage_part *const parts[] = {
    [SMALTI_STAGE_T5] = &smalti_stage_t5,         [SMALTI_STAGE_DIT] = &smalti_stage_dit,
    [SMALTI_STAGE_DECODE] = &smalti_stage_decode, [SMALTI_STAGE_ENCODE] = &smalti_stage_encode,
    [SMALTI_STAGE_TRAIN] = &smalti_stage_train,
};

char *smalti_stage_config(const struct smalti_stage_run *run, const char *component,
			  struct smalti_error *error)
{
	return smalti_format(error, "%s/%s/config.json", run->model->directory, component);
}

int smalti_stage_checkpoint(struct smalti_stage_run *run, const char *component, const char *stem,
			    struct smalti_error *error)
{
	char *directory = smalti_format(error, "%s/%s", run->model->directory, component);
	if (directory)
		run->checkpoint = smalti_checkpoint_open(directory, stem, run->model->variant, error);
	free(directory);
	return run->checkpoint ? 0 : -1;
}

int smalti_stage_size(struct smalti_stage_run *run, int64_t native, int64_t multiple,
		      struct smalti_error *error)
{
	run->width = run->stage->width ? run->stage->width : native;
	run->height = run->stage->height ? run->stage->height : native;
	if (run->width % multiple == 0 && run->height % multiple == 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "size %lldx%lld: expected multiples of %lld for this model",
			   (long long)run->width, (long long)run->height, (long long)multiple);
}

struct smalti_tile *smalti_stage_noise(struct smalti_task_group *task_group, int64_t rows, int64_t columns)
{
	float *values = smalti_task_group_calloc(task_group, rows, columns * (int64_t)sizeof(*values));
	if (!values)
		return NULL;
	uint32_t state = 1;
	for (int64_t i = 0; i < rows * columns; i++) {
		state = state * 1664525u + 1013904223u;
		values[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
	}
	struct smalti_tile *tile =
	    smalti_tile_upload(task_group, rows, columns * (int64_t)sizeof(*values), values);
	free(values);
	return tile;
}

/* Times one run, from the first insertion to the end of the last task; then at once measures the workers'
 * peak. */
static int run_once(struct smalti_stage_run *run, double *seconds, double *peak,
		    struct smalti_task_group_progress *sum, struct smalti_error *error)
{
	struct smalti_task_group *task_group = smalti_task_group_new(run->session, "stage", 0, error);
	if (!task_group)
		return -1;
	smalti_task_group_depends_on(task_group, run->weights);
	if (sum->inserted > 0) /* the models know the tasks after one run */
		task_group->compares = true;
	const double start = smalti_now();
	parts[run->stage->kind]->insert(run, task_group);
	smalti_task_group_wait(task_group);
	*seconds = smalti_now() - start;
	*peak = smalti_peak_of_workers(run->session);
	struct smalti_task_group_progress progress;
	smalti_task_group_progress(task_group, &progress);
	sum->inserted = progress.inserted;
	sum->predicted += progress.predicted;
	sum->deviation += progress.deviation;
	const int status = smalti_task_group_status(task_group, error);
	smalti_task_group_free(task_group);
	return status;
}

/* Measures the devices' use since `before`, and adds their peak to the CPUs'. */
static void measure_devices(const struct smalti_stage_run *run, const struct smalti_device_use *before,
			    struct smalti_stage_result *result)
{
	result->devices = smalti_devices_use(run->session, result->uses);
	for (int i = 0; i < result->devices; i++) {
		struct smalti_device_use *use = &result->uses[i];
		smalti_device_use_since(use, &before[i]);
		use->peak = smalti_peak_of_device(run->session, (int)use->worker, run->model->precision);
		result->ceiling += use->peak;
	}
}

static int run_all(struct smalti_stage_run *run, int repeats, struct smalti_stage_result *result,
		   struct smalti_error *error)
{
	double first, ceiling;
	struct smalti_task_group_progress sum = {0};
	struct smalti_device_use before[SMALTI_MAX_NODES];
	double *seconds = smalti_calloc(repeats, 2 * sizeof(*seconds), error);
	int status = seconds ? run_once(run, &first, &ceiling, &sum, error) : -1;
	smalti_devices_use(run->session, before);
	for (int i = 0; i < repeats && status == 0; i++)
		status = run_once(run, &seconds[i], &seconds[repeats + i], &sum, error);
	if (status == 0) {
		result->ceiling = smalti_median(seconds + repeats, repeats);
		measure_devices(run, before, result);
		result->seconds = smalti_median(seconds, repeats);
		result->least = seconds[0]; /* they are sorted */
		result->flops = sum.inserted;
		result->model_error = sum.predicted > 0 ? sum.deviation / sum.predicted : (double)NAN;
		result->packing = first > result->seconds ? first - result->seconds : 0;
	}
	free(seconds);
	return status;
}

static int open_and_run(struct smalti_stage_run *run, int repeats, struct smalti_stage_result *result,
			struct smalti_error *error)
{
	const struct smalti_stage_part *part = parts[run->stage->kind];
	run->weights = smalti_task_group_new(run->session, "weights", INT64_MAX, error);
	if (!run->weights)
		return -1;
	int status = part->open(run, error);
	if (status == 0) {
		smalti_task_group_wait(run->weights); /* it makes inputs, too */
		status = run_all(run, repeats, result, error);
	}
	smalti_task_group_wait(run->weights);
	part->close(run);
	smalti_task_group_free(run->weights);
	smalti_checkpoint_close(run->checkpoint);
	return status;
}

int smalti_stage_measure(const struct smalti_stage_spec *stage, const struct smalti_stage_model *model,
			 const struct smalti_session_options *options, int repeats,
			 struct smalti_stage_result *result, struct smalti_error *error)
{
	struct smalti_stage_run run = {.stage = stage, .model = model};
	const bool fresh = smalti_peak_reset();
	run.session = options ? smalti_session_open(options, error) : smalti_session_open_sequential(error);
	if (!run.session)
		return -1;
	int status = open_and_run(&run, repeats, result, error);
	result->peak = fresh ? smalti_peak_read() : -1;
	result->width = run.width;
	result->height = run.height;
	if (smalti_session_close(run.session, error) < 0)
		status = -1;
	return status;
}
