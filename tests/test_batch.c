/* SPDX-License-Identifier: Apache-2.0
 *
 * Many requests at a time: each image has the bytes of its single run, and the trace shows that stages of
 * different requests ran at the same time. */
#include "base/clock.h"
#include "base/json.h"
#include "embedded.h"
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 24 };

struct canvas {
	int64_t width;
	unsigned char *pixels;
	int status, done;
	char message[SMALTI_ERROR_LENGTH];
};

static const int64_t sizes[][2] = {{128, 128}, {96, 160}, {64, 64}, {48, 208}, {160, 96}, {100, 76}};

static struct smalti_request request_of(int i)
{
	static const char *const prompts[] = {"a red star above a blue ring on a white background",
					      "a large yellow heart on a blue background", ""};
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = prompts[i % 3];
	request.width = sizes[i % 6][0];
	request.height = sizes[i % 6][1];
	request.seed = (uint64_t)i;
	request.steps = 4 + i % 3;
	request.guidance = i % 5 ? 4.5 : 1.0;
	return request;
}

static int keep_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	(void)error;
	struct canvas *canvas = user;
	memcpy(canvas->pixels + first * canvas->width * 3, rgb, (size_t)(count * canvas->width * 3));
	return 0;
}

static void keep_status(void *user, int status, const struct smalti_error *error)
{
	struct canvas *canvas = user;
	canvas->status = status;
	canvas->done++;
	memcpy(canvas->message, error->message, sizeof(canvas->message));
}

static const struct smalti_model *painter; /* of the batches that are open */

static void submit(struct smalti_batch *batch, int i, struct canvas *canvas)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request = request_of(i);
	*canvas = (struct canvas){.width = request.width,
				  .pixels = calloc((size_t)(request.width * request.height), 3)};
	const struct smalti_image_callbacks callbacks = {
	    .user = canvas, .rows = keep_rows, .done = keep_status};
	SUCCEEDS(embedded_submit(painter, batch, &request, 0, &callbacks, &error), &error, "submit");
}

static void check_done(const struct canvas *canvas)
{
	CHECK(canvas->done == 1 && canvas->status == 0, canvas->message);
}

static void open_all(int cpus, const char *trace, struct smalti_session **session,
		     struct smalti_model **model)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options;
	smalti_session_defaults(&options);
	options.cpus = cpus;
	options.trace = trace;
	*session = smalti_session_open(&options, &error);
	SUCCEEDS(*session ? 0 : -1, &error, "session");
	CU_ASSERT_PTR_NOT_NULL_FATAL(*session);
	*model = embedded_open(*session);
}

static struct smalti_batch *open_batch(struct smalti_model *model)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	painter = model;
	SUCCEEDS(batch ? 0 : -1, &error, "batch");
	return batch;
}

static void a_batch_has_the_bytes_of_single_runs(void)
{
	struct smalti_session *session;
	struct smalti_model *model;
	struct canvas together[REQUESTS], alone;
	open_all(2, NULL, &session, &model);
	struct smalti_batch *batch = open_batch(model);
	for (int i = 0; i < REQUESTS; i++)
		submit(batch, i, &together[i]);
	smalti_batch_close(batch);
	for (int i = 0; i < REQUESTS; i++) {
		struct smalti_batch *single = open_batch(model);
		submit(single, i, &alone);
		smalti_batch_close(single);
		check_done(&together[i]);
		check_done(&alone);
		const struct smalti_request request = request_of(i);
		CHECK(memcmp(alone.pixels, together[i].pixels,
			     (size_t)(request.width * request.height * 3)) == 0,
		      "an image of the batch differs from its single run");
		free(alone.pixels);
		free(together[i].pixels);
	}
	embedded_close(session, model);
}

/* A task as the trace tells of it. */
struct span {
	double start;
	char stage; /* 'd'enoising, 'v'AE or 0 */
	const char *request;
};

static char stage_of(const char *task)
{
	if (strcmp(task, "conv") == 0 || strcmp(task, "emit_rows") == 0)
		return 'v';
	return strcmp(task, "block") == 0 || strcmp(task, "sampler_step") == 0 ? 'd' : 0;
}

static int read_spans(const cJSON *trace, struct span *spans, int room)
{
	int count = 0;
	for (const cJSON *e = cJSON_GetObjectItem(trace, "traceEvents")->child; e && count < room;
	     e = e->next) {
		const cJSON *name = cJSON_GetObjectItem(e, "name"), *duration = cJSON_GetObjectItem(e, "dur");
		const cJSON *request = cJSON_GetObjectItem(cJSON_GetObjectItem(e, "args"), "request");
		if (!duration || !request || !stage_of(name->valuestring))
			continue;
		spans[count++] = (struct span){cJSON_GetObjectItem(e, "ts")->valuedouble,
					       stage_of(name->valuestring), request->valuestring};
	}
	return count;
}

/* Events of a name whose arguments have all these numbers. */
static int count_with(const cJSON *trace, const char *name, const char *const keys[3])
{
	int count = 0;
	const cJSON *e;
	cJSON_ArrayForEach (e, cJSON_GetObjectItem(trace, "traceEvents")) {
		const cJSON *arguments = cJSON_GetObjectItem(e, "args");
		int found = 0;
		for (int i = 0; i < 3; i++)
			found += !keys[i] || cJSON_IsNumber(cJSON_GetObjectItem(arguments, keys[i]));
		count += found == 3 && strcmp(cJSON_GetObjectItem(e, "name")->valuestring, name) == 0;
	}
	return count;
}

static void check_places(const cJSON *trace)
{
	static const struct {
		const char *name, *keys[3];
	} cases[] = {
	    {"block", {"stage", "layer"}}, {"sampler_step", {"stage"}}, {"conv", {"stage", "layer", "band"}},
	    {"text layer", {"layer"}},     {"tasks", {"in flight"}},    {"tiles, MiB", {"in use"}}};
	for (int i = 0; i < COUNT(cases); i++)
		CHECK(count_with(trace, cases[i].name, cases[i].keys) > 0, cases[i].name);
}

/* Whether some denoising of the span's request began after `time` and some before. */
static bool denoises_around(const struct span *spans, int count, const struct span *of, double time)
{
	bool before = false, after = false;
	for (int i = 0; i < count; i++)
		if (spans[i].stage == 'd' && strcmp(spans[i].request, of->request) == 0) {
			before = before || spans[i].start < time;
			after = after || spans[i].start > time;
		}
	return before && after;
}

/* How many decoding tasks began in the midst of another image's denoising: whichever worker had the processor
 * then, which on a loaded machine is chance. */
static int count_overlaps(const struct span *spans, int count)
{
	int overlaps = 0;
	for (int i = 0; i < count; i++)
		for (int j = 0; spans[i].stage == 'v' && j < count; j++)
			if (spans[j].stage == 'd' && strcmp(spans[i].request, spans[j].request) != 0 &&
			    spans[j].start > spans[i].start &&
			    denoises_around(spans, count, &spans[j], spans[i].start)) {
				overlaps++;
				break;
			}
	return overlaps;
}

static void stages_of_different_requests_overlap(void)
{
	enum { ROOM = 100000 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session;
	struct smalti_model *model;
	struct canvas canvases[REQUESTS];
	const char *path = test_file("trace.json");
	open_all(2, path, &session, &model);
	struct smalti_batch *batch = open_batch(model);
	for (int i = 0; i < REQUESTS; i++)
		submit(batch, i, &canvases[i]);
	smalti_batch_close(batch);
	embedded_close(session, model);
	for (int i = 0; i < REQUESTS; i++) {
		check_done(&canvases[i]);
		free(canvases[i].pixels);
	}
	cJSON *trace = smalti_json_read(path, 1 << 28, &error);
	SUCCEEDS(trace ? 0 : -1, &error, "trace");
	if (trace)
		check_places(trace);
	struct span *spans = calloc(ROOM, sizeof(*spans));
	int overlaps = trace && spans ? count_overlaps(spans, read_spans(trace, spans, ROOM)) : 0;
	printf("\n    %d decoding tasks amidst another image's denoising", overlaps);
	CHECK(overlaps >= REQUESTS / 6, "stages of different requests overlap");
	free(spans);
	cJSON_Delete(trace);
}

static void what_cannot_be_made_is_refused_before_it_starts(void)
{
	struct smalti_session *session;
	struct smalti_model *model;
	struct canvas canvas = {0};
	const struct smalti_image_callbacks callbacks = {
	    .user = &canvas, .rows = keep_rows, .done = keep_status};
	const float not_finite[4 * 2 * 2] = {1e38f * 1e38f};
	open_all(2, NULL, &session, &model);
	struct smalti_batch *batch = open_batch(model);
	static const struct {
		const char *what, *word;
		int64_t width, height, steps, images;
		double guidance;
		const char *scheduler;
		double eta;
	} cases[] = {
	    {"width 15", "width", 15, 128, 20, 1, 4.5, NULL, 0},
	    {"height -1", "height", 128, -1, 20, 1, 4.5, NULL, 0},
	    {"width 10^9", "width", 1000000000, 128, 20, 1, 4.5, NULL, 0},
	    {"larger than the machine", "memory limit", 131072, 131072, 20, 1, 4.5, NULL, 0},
	    {"no steps", "steps", 128, 128, 0, 1, 4.5, NULL, 0},
	    {"too many steps", "steps", 128, 128, 1001, 1, 4.5, NULL, 0},
	    {"no images", "images", 128, 128, 20, 0, 4.5, NULL, 0},
	    {"guidance", "guidance", 128, 128, 20, 1, -1, NULL, 0},
	    {"guidance", "guidance", 128, 128, 20, 1, 0.0 / 0.0, NULL, 0},
	    {"scheduler", "euler", 128, 128, 20, 1, 4.5, "plms", 0},
	    {"only timestep 0", "2 steps", 128, 128, 1, 1, 4.5, "euler", 0},
	    {"only timestep 0", "2 steps", 128, 128, 1, 1, 4.5, "ddim", 0},
	    {"a model of one step", "dmd", 128, 128, 2, 1, 4.5, "dmd", 0},
	    {"a model of noise", "flow", 128, 128, 20, 1, 4.5, "flow euler", 0},
	    {"eta of another", "ddim", 128, 128, 20, 1, 4.5, "euler", 0.5},
	    {"eta above 1", "eta", 128, 128, 20, 1, 4.5, "ddim", 1.5},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_request request;
		smalti_request_defaults(&request);
		request.width = cases[i].width;
		request.height = cases[i].height;
		request.steps = cases[i].steps;
		request.images = cases[i].images;
		request.guidance = cases[i].guidance;
		request.scheduler = cases[i].scheduler;
		request.eta = cases[i].eta;
		int status = embedded_submit(model, batch, &request, 0, &callbacks, &error);
		CHECK(status == -1 && strstr(error.message, cases[i].word), error.message);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.width = request.height = 16;
	request.latents = not_finite;
	request.latents_count = 16;
	FAILS(embedded_submit(model, batch, &request, 0, &callbacks, &error), &error, SMALTI_EINVAL,
	      "latents", "not finite");
	smalti_batch_close(batch);
	CHECK(canvas.done == 0, "a refused image is not done");
	embedded_close(session, model);
}

enum { THREADS = 4, EACH = 4 };

struct submitter {
	struct smalti_batch *batch;
	int first;
	struct canvas canvases[EACH];
};

static void *submit_some(void *argument)
{
	struct submitter *s = argument;
	for (int i = 0; i < EACH; i++)
		submit(s->batch, s->first + i, &s->canvases[i]);
	smalti_batch_wait(s->batch);
	return NULL;
}

static void threads_share_a_batch(void)
{
	struct smalti_session *session;
	struct smalti_model *model;
	struct submitter submitters[THREADS];
	pthread_t threads[THREADS];
	open_all(2, NULL, &session, &model);
	struct smalti_batch *batch = open_batch(model);
	for (int t = 0; t < THREADS; t++) {
		submitters[t] = (struct submitter){.batch = batch, .first = t * EACH};
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[t], NULL, submit_some, &submitters[t]), 0);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	smalti_batch_close(batch);
	for (int i = 0; i < THREADS * EACH; i++) {
		struct canvas alone, *canvas = &submitters[i / EACH].canvases[i % EACH];
		struct smalti_batch *single = open_batch(model);
		submit(single, i, &alone);
		smalti_batch_close(single);
		check_done(canvas);
		const struct smalti_request request = request_of(i);
		CHECK(memcmp(alone.pixels, canvas->pixels, (size_t)(request.width * request.height * 3)) == 0,
		      "an image of a thread differs from its single run");
		free(alone.pixels);
		free(canvas->pixels);
	}
	embedded_close(session, model);
}

/* What the only worker waits for in the middle of an image. */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t opened;
	bool open, late;
};

static int wait_for_gate(void *user, int64_t first, int64_t count, const unsigned char *rgb,
			 struct smalti_error *error)
{
	struct gate *gate = user;
	const struct timespec until = smalti_deadline(INT64_C(20000000000));
	(void)first, (void)count, (void)rgb, (void)error;
	pthread_mutex_lock(&gate->mutex);
	while (!gate->open && !gate->late)
		gate->late =
		    pthread_cond_clockwait(&gate->opened, &gate->mutex, CLOCK_MONOTONIC, &until) != 0;
	pthread_mutex_unlock(&gate->mutex);
	return 0;
}

static void ignore_status(void *user, int status, const struct smalti_error *error)
{
	(void)user, (void)status, (void)error;
}

/* All tasks of an image can be inserted while those of the image before it wait for their worker. */
static void small_images_do_not_hold_up_those_behind_them(void)
{
	struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
	const struct smalti_image_callbacks callbacks = {
	    .user = &gate, .rows = wait_for_gate, .done = ignore_status};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request request = request_of(0);
	struct smalti_session *session;
	struct smalti_model *model;
	open_all(1, NULL, &session, &model);
	struct smalti_batch *batch = open_batch(model);
	for (int i = 0; i < 3; i++)
		SUCCEEDS(embedded_submit(painter, batch, &request, 0, &callbacks, &error), &error, "submit");
	pthread_mutex_lock(&gate.mutex);
	CHECK(!gate.late, "three images are inserted before the first of them has ended");
	gate.open = true;
	pthread_cond_broadcast(&gate.opened);
	pthread_mutex_unlock(&gate.mutex);
	smalti_batch_close(batch);
	embedded_close(session, model);
}

static const struct test tests[] = {
    {"small images do not hold up those behind them", small_images_do_not_hold_up_those_behind_them},
    {"a batch has the bytes of single runs", a_batch_has_the_bytes_of_single_runs},
    {"threads share a batch", threads_share_a_batch},
    {"stages of different requests overlap", stages_of_different_requests_overlap},
    {"what cannot be made is refused before it starts", what_cannot_be_made_is_refused_before_it_starts},
};

TEST_MAIN("batches", tests)
