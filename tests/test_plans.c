/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan fixes the bits: whatever policy and number of workers runs a tiling, its result is the same to the
 * last bit; another tiling changes rounding only. And what fails, fails alone. */
#include "codelets/codelets.h"
#include "embedded.h"
#include "graphs/diffusion.h"
#include "harness.h"
#include "host/pool.h"
#include "jobs/model.h"
#include "judge.h"
#include "stage.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct judge_schedule schedules[] = {
    {"eager", 1}, {"eager", 2}, {"lws", 1},    {"lws", 2},    {"dmda", 1},
    {"dmda", 2},  {"dmdas", 1}, {"dmdas", 2},  {"ws", 1},     {"ws", 2},
    {"prio", 1},  {"prio", 2},  {"random", 1}, {"random", 2}, {NULL, 1},
};

enum { SCHEDULES = COUNT(schedules), PLANS_EACH = 4 };

static struct smalti_session *session;
static struct smalti_model *model;

static void open_model(const struct judge_schedule *schedule)
{
	session = judge_session(schedule);
	model = embedded_open(session);
}

/* Random plans */

enum { WHOLE = 1 << 20, TEXT_TOKENS = 9, LATENT_CHANNELS = 4 };

static void plan_dit(uint64_t *state, const char *schedule)
{
	static const int64_t sides[4][2] = {{2, 2}, {6, 10}, {14, 10}, {32, 40}};
	static const int64_t tiles[] = {1, 9, 7, 64, 256, WHOLE}, max_tiles = 40;
	const struct smalti_transformer_config *c = &model->transformer;
	const int64_t *side = sides[judge_draw(state, (const int64_t[]){0, 1, 2, 3}, 4)];
	const int64_t tokens = side[0] / c->patch_size * (side[1] / c->patch_size);
	struct judge_result result = {.stage = JUDGE_DIT, .height = side[0], .width = side[1]};
	result.tile = judge_draw_tile(state, tiles, 6, tokens, max_tiles);
	result.count = c->out_channels * side[0] * side[1];
	result.values = judge_array(result.count);
	float *x = judge_filled(LATENT_CHANNELS * side[0] * side[1], 0.11, 0.2);
	float *text = judge_filled(TEXT_TOKENS * c->caption_channels, 0.07, 0.5);
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(stage_dit(session, model->denoiser, x, side[0], side[1], 500, text, TEXT_TOKENS, result.tile,
			   smalti_model_factor(model), result.values, &error),
		 &error, schedule);
	judge(&result, schedule);
	free(x);
	free(text);
}

/* Whole requests */

enum { HEIGHT = 6, WIDTH = 10, FACTOR = 8, IMAGE = 3 * FACTOR * HEIGHT * FACTOR * WIDTH };

struct request {
	struct smalti_task_group *task_group;
	float latents[LATENT_CHANNELS * HEIGHT * WIDTH];
	float image[IMAGE]; /* as rows of pixels */
	int64_t rows;       /* received */
	int64_t max_rows;   /* then it takes no more */
};

static int keep_latents(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	struct request *request = user;
	memcpy(request->latents, values, (size_t)count * sizeof(*values));
	return 0;
}

static int keep_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		     struct smalti_error *error)
{
	struct request *request = user;
	if (first != request->rows)
		return smalti_fail(error, SMALTI_EINVAL, "row %lld came after %lld", (long long)first,
				   (long long)request->rows);
	if (first + rows > request->max_rows)
		return smalti_fail(error, SMALTI_EIO, "disk full");
	memcpy(request->image + first * width * 3, pixels, (size_t)(rows * width * 3) * sizeof(*pixels));
	request->rows += rows;
	return 0;
}

static struct smalti_cross_cache *caption_of(struct smalti_task_group *task_group,
					     const struct smalti_token_ids *words)
{
	struct smalti_tile *hidden;
	model->text.model->functions->encode(model->text.model, task_group, words, 1, &smalti_strategy_none,
					     &hidden);
	struct smalti_cross_cache *caption =
	    model->denoiser->functions->cross_cache(model->denoiser, task_group, hidden, words->count);
	smalti_tile_release(hidden);
	return caption;
}

static const struct smalti_token_ids none = {.ids = (const int32_t[]){1}, .count = 1};
static const struct smalti_token_ids prompt = {.ids = (const int32_t[]){12, 40, 7, 300, 5, 1}, .count = 6};
static const struct smalti_token_ids unknown = {.ids = (const int32_t[]){12, 40, 100000, 1}, .count = 4};

/* Inserts all tasks from text to image and does not wait. */
static void begin(struct request *request, const struct smalti_sampler *sampler,
		  const struct smalti_token_ids *text, int64_t max_rows)
{
	static int requests; /* each of another grain, which changes nothing */
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "request", 0, &error);
	SUCCEEDS(task_group ? 0 : -1, &error, "scope");
	task_group->grain = (enum smalti_grain)(requests++ % (SMALTI_GRAIN_PASS + 1));
	smalti_task_group_depends_on(task_group, model->task_group);
	*request = (struct request){.task_group = task_group, .max_rows = max_rows};
	struct smalti_diffusion diffusion = {
	    .sampler = sampler,
	    .height = HEIGHT,
	    .width = WIDTH,
	    .vae_factor = FACTOR,
	    .band_tokens = 4,
	    .strategy = &smalti_strategy_none,
	    .seed = 20260,
	    .images = 1,
	    .guidance = 4.5f,
	    .caches = {caption_of(task_group, &none), caption_of(task_group, text)},
	    .cache_count = 2,
	};
	struct smalti_tile *latents = smalti_diffuse(model->denoiser, task_group, &diffusion);
	smalti_insert(deliver, task_group, (.x = latents), .count = LATENT_CHANNELS * HEIGHT * WIDTH,
		      .sink = keep_latents, .user = request);
	stage_insert_decoding(model->vae, task_group, latents, HEIGHT, WIDTH, 2, keep_rows, request);
	smalti_tile_release(latents);
	model->denoiser->functions->release_cross_cache(diffusion.caches[0]);
	model->denoiser->functions->release_cross_cache(diffusion.caches[1]);
}

static int end(struct request *request, struct smalti_error *error)
{
	smalti_task_group_wait(request->task_group);
	int status = smalti_task_group_status(request->task_group, error);
	smalti_task_group_free(request->task_group);
	return status;
}

static struct smalti_sampler *sampler_named(const struct smalti_sampler_name *name)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_scheduler_config config;
	SUCCEEDS(smalti_scheduler_config_read_as(model->scheduler_path, name->scheduler, &config, &error),
		 &error, name->name);
	smalti_sampler_name_set(name, &config);
	struct smalti_sampler *sampler = smalti_sampler_new(&config, name->steps ? name->steps : 3, &error);
	SUCCEEDS(sampler ? 0 : -1, &error, name->name);
	return sampler;
}

static void keep(int stage, const float *values, int64_t count, const char *schedule)
{
	struct judge_result result = {
	    .stage = stage, .height = HEIGHT, .width = WIDTH, .count = count, .values = judge_array(count)};
	memcpy(result.values, values, (size_t)count * sizeof(*values));
	judge(&result, schedule);
}

/* Tells whether the embedded model, which predicts noise, can be sampled so. */
static bool is_of_noise(const struct smalti_sampler_name *name)
{
	return name->scheduler != SMALTI_SCHEDULER_FLOW_EULER &&
	       name->scheduler != SMALTI_SCHEDULER_FLOW_HEUN;
}

/* All samplers of noise at once, from text to image. */
static void diffuse_all(const char *schedule)
{
	enum { MOST = 24 };
	static struct request requests[MOST];
	struct smalti_sampler *samplers[MOST];
	const struct smalti_sampler_name *name;
	struct smalti_error error = SMALTI_NO_ERROR;
	int count = 0;
	for (; (name = smalti_sampler_name_at(count)) && is_of_noise(name) && count < MOST; count++) {
		samplers[count] = sampler_named(name);
		begin(&requests[count], samplers[count], &prompt, FACTOR * HEIGHT);
	}
	for (int i = 0; i < count; i++) {
		SUCCEEDS(end(&requests[i], &error), &error, smalti_sampler_name_at(i)->name);
		CHECK(requests[i].rows == FACTOR * HEIGHT, smalti_sampler_name_at(i)->name);
		keep(JUDGE_DIFFUSION + 2 * i, requests[i].latents, LATENT_CHANNELS * HEIGHT * WIDTH,
		     schedule);
		keep(JUDGE_DIFFUSION + 2 * i + 1, requests[i].image, IMAGE, schedule);
		free(samplers[i]);
	}
}

static void plans(void)
{
	uint64_t state = 1;
	for (int i = 0; i < SCHEDULES; i++) {
		const char *schedule = judge_schedule_name(&schedules[i]);
		open_model(&schedules[i]);
		for (int plan = 0; plan < PLANS_EACH; plan++) {
			plan_dit(&state, schedule);
		}
		diffuse_all(schedule);
		embedded_close(session, model);
	}
	judge_forget();
}

/* Failures */

/* An unknown token fails in the first task, mostly before the others are inserted; a full disk in one of the
 * last. */
static const struct {
	const char *what;
	const struct smalti_token_ids *text;
	int64_t max_rows;
	enum smalti_code code;
	const char *words;
} ways[] = {
    {"unknown token", &unknown, FACTOR *HEIGHT, SMALTI_EFORMAT, "token id 100000"},
    {"full disk", &prompt, FACTOR *HEIGHT / 2, SMALTI_EIO, "disk full"},
    {"full disk at once", &prompt, 0, SMALTI_EIO, "disk full"},
};

enum { WAYS = COUNT(ways) };

static void begin_failing(struct request *request, const struct smalti_sampler *sampler, int way)
{
	begin(request, sampler, ways[way].text, ways[way].max_rows);
}

static void end_failing(struct request *request, int way)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(end(request, &error), &error, ways[way].code, ways[way].what, ways[way].words);
	CHECK(request->rows < FACTOR * HEIGHT, "no whole image");
}

static void failures(void)
{
	static struct request alone, good[WAYS], bad[WAYS];
	struct smalti_error error = SMALTI_NO_ERROR;
	open_model(&(const struct judge_schedule){"lws", 2});
	model->vae->weights->transient = true;
	struct smalti_sampler *sampler = sampler_named(smalti_sampler_name_at(0));
	begin(&alone, sampler, &prompt, FACTOR * HEIGHT);
	SUCCEEDS(end(&alone, &error), &error, "alone");
	for (int way = 0; way < WAYS; way++) {
		begin_failing(&bad[way], sampler, way);
		begin(&good[way], sampler, &prompt, FACTOR * HEIGHT);
	}
	for (int way = 0; way < WAYS; way++) {
		end_failing(&bad[way], way);
		SUCCEEDS(end(&good[way], &error), &error, "beside requests that fail");
		CHECK(memcmp(good[way].latents, alone.latents, sizeof(alone.latents)) == 0, "latents");
		CHECK(memcmp(good[way].image, alone.image, sizeof(alone.image)) == 0, "picture");
	}
	free(sampler);
	embedded_close(session, model);
}

/* Bytes of tiles after a decoding, once no more go. */
static int64_t held_after_decoding(bool transient)
{
	enum { SIDE = 4 };
	open_model(&(const struct judge_schedule){"lws", 2});
	model->vae->weights->transient = transient;
	float *z = judge_filled(LATENT_CHANNELS * SIDE * SIDE, 0.3, 0.4);
	float *image = judge_array(3 * SIDE * SIDE * smalti_model_factor(model) * smalti_model_factor(model));
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(stage_decode(session, model->vae, z, SIDE, SIDE, 2, image, &error), &error, "decode");
	struct smalti_pool_state state;
	int64_t before;
	smalti_pool_state(session->pool, &state);
	do { /* StarPU frees in its own time */
		before = state.used;
		usleep(50000);
		smalti_pool_state(session->pool, &state);
	} while (state.used < before);
	free(z);
	free(image);
	embedded_close(session, model);
	return state.used;
}

static void transient_weights_go(void)
{
	const int64_t passing = held_after_decoding(true), kept = held_after_decoding(false);
	CHECK(!SMALTI_POOLED || passing < kept / 10, "packed weights stay");
}

/* What a failed request leaves behind would grow with their number. */
static void failures_leave_nothing(void)
{
	enum { REQUESTS = 120, SETTLED = 60, ALLOWED_EACH = 1024 }; /* a leaked tile takes more */
	static struct request request;
	open_model(&(const struct judge_schedule){"lws", 2});
	struct smalti_sampler *sampler = sampler_named(smalti_sampler_name_at(0));
	size_t settled = 0;
	for (int i = 0; i < REQUESTS; i++) {
		if (i == SETTLED)
			settled = mallinfo2().uordblks;
		begin_failing(&request, sampler, i % WAYS);
		end_failing(&request, i % WAYS);
	}
	const ssize_t growth = (ssize_t)(mallinfo2().uordblks - settled);
	char what[96];
	snprintf(what, sizeof(what), "%zd bytes more after %d failures", growth, REQUESTS - SETTLED);
	CHECK(growth <= (REQUESTS - SETTLED) * ALLOWED_EACH, what);
	free(sampler);
	embedded_close(session, model);
}

static const struct test tests[] = {
    {"one tiling, one result to the bit", plans},
    {"a failure is its request's alone", failures},
    {"transient weights go", transient_weights_go},
    {"failures leave nothing behind", failures_leave_nothing},
};

TEST_MAIN("plans", tests)
