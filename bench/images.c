/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/images.h"

#include "base/base.h"
#include "base/clock.h"
#include "bench/memory.h"
#include "bench/statistics.h"
#include "jobs/model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { STAGES = 3, LOOK_NANOSECONDS = 1000000 };

/* An image in progress, and a thread that follows its stages. */
struct painting {
	struct smalti_batch *batch;
	atomic_bool done;
	double stages[STAGES];
	int status;
	struct smalti_error *error;
};

static void *look(void *user)
{
	static const struct timespec pause = {.tv_nsec = LOOK_NANOSECONDS};
	struct painting *p = user;
	enum smalti_stage stage = SMALTI_STAGE_TEXT;
	double last = smalti_now();
	while (!atomic_load(&p->done)) {
		struct smalti_batch_progress progress;
		nanosleep(&pause, NULL);
		smalti_batch_progress(p->batch, &progress);
		const double now = smalti_now();
		stage = progress.active ? progress.stage : stage;
		p->stages[stage] += now - last;
		last = now;
	}
	return NULL;
}

static int drop_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	(void)user, (void)first, (void)count, (void)rgb, (void)error;
	return 0;
}

static void done(void *user, int status, const struct smalti_error *error)
{
	struct painting *p = user;
	p->status = status;
	if (status < 0)
		*p->error = *error;
}

static int paint(struct painting *p, struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_image_callbacks image = {.user = p, .rows = drop_rows, .done = done};
	pthread_t watcher;
	p->error = error;
	if (pthread_create(&watcher, NULL, look, p))
		return smalti_fail(error, SMALTI_ENOMEM, "no thread to look at the progress");
	if (smalti_batch_submit(p->batch, plan, 0, &image, error) < 0)
		p->status = -1;
	smalti_batch_wait(p->batch);
	atomic_store(&p->done, true);
	pthread_join(watcher, NULL);
	return p->status;
}

/* Makes image `number`. */
static int paint_timed(struct smalti_model *model, struct smalti_batch *batch,
		       const struct smalti_request *request, int number, double *seconds,
		       double stages[STAGES], struct smalti_error *error)
{
	struct painting painting = {.batch = batch};
	struct smalti_request r = *request;
	char *prompt = smalti_format(error, "%s, number %d", request->prompt, number);
	if (!prompt)
		return -1;
	r.prompt = prompt;
	r.seed = (uint64_t)number;
	const double start = smalti_now();
	struct smalti_plan *plan = smalti_request_resolve(model, &r, error);
	const int status = plan ? paint(&painting, plan, error) : -1;
	*seconds = smalti_now() - start;
	for (int stage = 0; stage < STAGES; stage++)
		stages[stage] = painting.stages[stage];
	smalti_plan_free(plan);
	free(prompt);
	return status;
}

/* Fills seconds [1 + STAGES][repeats]: of images, then of their stages. */
static int paint_all(struct smalti_model *model, struct smalti_batch *batch,
		     const struct smalti_request *request, int repeats, double *seconds,
		     struct smalti_images_result *result, struct smalti_error *error)
{
	struct smalti_device_use before[SMALTI_MAX_NODES];
	double stages[STAGES];
	if (paint_timed(model, batch, request, 0, &result->first, stages, error) < 0)
		return -1;
	smalti_devices_use(model->session, before);
	for (int i = 0; i < repeats; i++) {
		if (paint_timed(model, batch, request, i + 1, &seconds[i], stages, error) < 0)
			return -1;
		for (int stage = 0; stage < STAGES; stage++)
			seconds[(1 + stage) * repeats + i] = stages[stage];
	}
	result->devices = smalti_devices_use(model->session, result->uses);
	for (int i = 0; i < result->devices; i++)
		smalti_device_use_since(&result->uses[i], &before[i]);
	result->seconds = smalti_median(seconds, repeats);
	result->least = seconds[0]; /* they are sorted */
	for (int stage = 0; stage < STAGES; stage++)
		result->stages[stage] = smalti_median(seconds + (1 + stage) * repeats, repeats);
	return 0;
}

static void name_strategy(const struct smalti_plan *plan, struct smalti_images_result *result)
{
	const char *strategy = smalti_plan_strategy(plan), *shares = smalti_plan_shares(plan);
	snprintf(result->strategy, sizeof(result->strategy), "%s%s%s", strategy ? strategy : "",
		 strategy && shares ? " " : "", shares ? shares : "");
}

static int measure(struct smalti_model *model, const struct smalti_request *request, int repeats,
		   struct smalti_images_result *result, struct smalti_error *error)
{
	struct smalti_request resolved = *request;
	struct smalti_plan *plan = smalti_request_resolve(model, &resolved, error);
	if (plan)
		name_strategy(plan, result);
	smalti_plan_free(plan); /* each image has its own prompt, and so its own plan */
	if (!plan)
		return -1;
	result->width = resolved.width;
	result->height = resolved.height;
	struct smalti_batch *batch = smalti_batch_open(model, error);
	double *seconds = batch ? smalti_calloc((1 + STAGES) * repeats, sizeof(*seconds), error) : NULL;
	const int status = seconds ? paint_all(model, batch, &resolved, repeats, seconds, result, error) : -1;
	smalti_batch_close(batch);
	free(seconds);
	return status;
}

int smalti_images_measure(const struct smalti_session_options *session_options,
			  const struct smalti_model_options *options, const struct smalti_request *request,
			  int repeats, struct smalti_images_result *result, struct smalti_error *error)
{
	const bool fresh = smalti_peak_reset();
	struct smalti_session *session = smalti_session_open(session_options, error);
	struct smalti_model *model = session ? smalti_model_open(session, options, error) : NULL;
	int status = model ? measure(model, request, repeats, result, error) : -1;
	result->peak = fresh ? smalti_peak_read() : -1;
	smalti_model_close(model);
	if (smalti_session_close(session, error) < 0)
		status = -1;
	return status;
}
