/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves between memories when the transformer is spread over devices: what the strategy says and no
 * more.
 */
#include "base/clock.h"
#include "codelets/codelets.h"
#include "embedded.h"
#include "graphs/denoising_count.h"
#include "graphs/diffusion.h"
#include "graphs/t5/t5.h"
#include "harness.h"
#include "jobs/model.h"
#include "moved.h"
#include "synthetic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIDE = 16,
	LARGE_SIDE = 32,
	TEXT_TOKENS = 9,
	BAND_TOKENS = 16,
	FEW_STEPS = 3,
	MANY_STEPS = 7,
	PLACES = 5,
	FEW_BYTES = 16384 /* four latents: tasks at the ends of an image run anywhere */
};

static struct smalti_session *session;
static struct smalti_model *model;
static int64_t side = SIDE;

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

static struct smalti_cross_cache *caption(struct smalti_task_group *task_group, double phase)
{
	const int64_t width = model->denoiser->text_width;
	float text[TEXT_TOKENS * 4096];
	test_fill(text, TEXT_TOKENS * width, 0.07, phase);
	struct smalti_tile *hidden =
	    smalti_tile_upload(task_group, TEXT_TOKENS, width * (int64_t)sizeof(float), text);
	hidden->owner = 0; /* what is made of it is made on the CPU, in every run */
	struct smalti_cross_cache *cache =
	    model->denoiser->functions->cross_cache(model->denoiser, task_group, hidden, TEXT_TOKENS);
	smalti_tile_release(hidden);
	return cache;
}

/* What the task group's account says came to a place, but for weights. */
static double counted_at(const struct smalti_task_transfers *transfers, int place)
{
	double bytes = 0;
	for (int64_t stage = 0; stage < transfers->stages; stage++)
		for (int kind = 0; kind < SMALTI_TRANSFER_KINDS; kind++)
			if (kind != SMALTI_TRANSFER_WEIGHTS)
				bytes += smalti_task_transfers_at(transfers, stage, place)[kind];
	return bytes;
}

/* Denoises under a strategy; what went to each device, and what was counted. */
static void denoise(const struct smalti_strategy *strategy, int64_t steps, float *latents,
		    double bytes[PLACES], double counted[PLACES])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_sampler *sampler = smalti_sampler_new(&model->scheduler, steps, &error);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "image", 0, &error);
	struct smalti_diffusion diffusion = {
	    .sampler = sampler,
	    .height = side,
	    .width = side,
	    .vae_factor = smalti_model_factor(model),
	    .band_tokens = BAND_TOKENS,
	    .strategy = strategy,
	    .seed = 7,
	    .images = 1,
	    .guidance = 4.5f,
	    .caches = {caption(task_group, 0.1), caption(task_group, 0.5)},
	    .cache_count = 2,
	};
	moved_bytes(session, PLACES, bytes);
	struct smalti_tile *planes = smalti_diffuse(model->denoiser, task_group, &diffusion);
	smalti_insert(deliver, task_group, (.x = planes), .count = model->denoiser->in_channels * side * side,
		      .sink = keep, .user = latents);
	smalti_tile_release(planes);
	for (int i = 0; i < 2; i++)
		model->denoiser->functions->release_cross_cache(diffusion.caches[i]);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "denoising");
	for (int place = 0; counted && place < PLACES; place++)
		counted[place] = counted_at(&task_group->transfers, place);
	smalti_task_group_free(task_group);
	free(sampler);
	moved_bytes(session, PLACES, bytes);
}

/* What each place bears of one step, as the strategy says. */
static void plan_loads(const struct smalti_strategy *strategy, struct smalti_load loads[PLACES])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t columns = side / model->denoiser->patch_size;
	const struct smalti_denoising denoising = {.denoiser = model->denoiser,
						   .tokens = columns * columns,
						   .columns = columns,
						   .band_tokens = BAND_TOKENS,
						   .prompt_tokens = {TEXT_TOKENS, TEXT_TOKENS},
						   .branches = 2};
	SUCCEEDS(smalti_denoising_loads(&denoising, strategy, true, PLACES, loads, &error), &error, "loads");
}

static void compare(const char *name, const struct smalti_strategy *strategy, const double measured[PLACES],
		    const double counted[PLACES])
{
	char what[160];
	struct smalti_load loads[PLACES];
	plan_loads(strategy, loads);
	for (int place = 1; place < PLACES; place++) {
		double expected = 0;
		for (int kind = 0; kind < SMALTI_TRANSFER_KINDS; kind++)
			expected += loads[place].transfers[kind];
		snprintf(what, sizeof(what),
			 "%s: %.0f bytes to device %d each step, %.0f planned, %.0f counted", name,
			 measured[place], place, expected, counted[place]);
		printf("\n    %s", what);
		CHECK(fabs(measured[place] - expected) <= 0.02 * expected + FEW_BYTES, what);
		CHECK(fabs(measured[place] - counted[place]) <= 0.02 * expected + FEW_BYTES, what);
	}
}

static void only_what_the_plan_says(void)
{
	static const struct {
		const char *name;
		double shares[PLACES]; /* all 0: even */
		bool full;             /* only with SMALTI_TEST_FULL */
	} plans[] = {
	    {.name = "patch2", .full = true},
	    {.name = "patch3", .shares = {0, 1, 2, 4}},
	    {.name = "ring4", .full = true},
	    {.name = "ulysses2", .full = true},
	    {.name = "ulysses3", .shares = {0, 3, 1, 2}, .full = true},
	    {.name = "tensor2", .full = true},
	    {.name = "tensor3", .shares = {0, 1, 2, 2}, .full = true},
	    {.name = "cfg2", .full = true},
	    {.name = "hybrid:cfg2.ulysses2", .full = true},
	    {.name = "hybrid:cfg2.tensor2"},
	    {.name = "hybrid:tensor2.ring2", .full = true},
	    {.name = "pipeline2", .full = true},
	    {.name = "displaced3"},
	    {.name = "masked2", .full = true},
	};
	static float first[4 * SIDE * SIDE], again[4 * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	model = embedded_open(session);
	for (int i = 0; i < COUNT(plans); i++) {
		if (plans[i].full && !getenv("SMALTI_TEST_FULL"))
			continue;
		double few[PLACES], many[PLACES], step[PLACES];
		double few_counted[PLACES], many_counted[PLACES], counted[PLACES];
		struct smalti_strategy strategy;
		const bool even = plans[i].shares[1] <= 0;
		SUCCEEDS(smalti_strategy_read(&strategy, plans[i].name, even ? NULL : plans[i].shares, PLACES,
					      &error),
			 &error, plans[i].name);
		denoise(&strategy, FEW_STEPS, again, few, NULL); /* weights come */
		denoise(&strategy, FEW_STEPS, again, few, few_counted);
		denoise(&strategy, MANY_STEPS, first, many, many_counted);
		for (int place = 0; place < PLACES; place++) {
			step[place] = (many[place] - few[place]) / (MANY_STEPS - FEW_STEPS);
			counted[place] =
			    (many_counted[place] - few_counted[place]) / (MANY_STEPS - FEW_STEPS);
		}
		compare(plans[i].name, &strategy, step, counted);
		smalti_strategy_free(&strategy);
	}
	const double apart = test_max_error(first, again, model->denoiser->in_channels * SIDE * SIDE);
	CHECK(apart > 0 && isfinite(apart), "more steps, another image");
	embedded_close(session, model);
}

/* Each device fetches the weights once, or its shard of them. */
static void weights_come_once(void)
{
	static const char *const names[] = {"patch2", "tensor2", "tensor4"};
	static float latents[4 * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int i = 0; i < COUNT(names); i++) {
		double cold[PLACES], warm[PLACES];
		char what[120];
		struct smalti_strategy strategy;
		model = embedded_open(session);
		SUCCEEDS(smalti_strategy_read(&strategy, names[i], NULL, PLACES, &error), &error, names[i]);
		denoise(&strategy, FEW_STEPS, latents, cold, NULL);
		denoise(&strategy, FEW_STEPS, latents, warm, NULL);
		struct smalti_load loads[PLACES];
		plan_loads(&strategy, loads);
		for (int place = 1; place < PLACES; place++) {
			const double planned = loads[place].weights;
			const double fetched = cold[place] - warm[place];
			snprintf(what, sizeof(what),
				 "%s: device %d fetches %.0f bytes of weights, %.0f planned", names[i], place,
				 fetched, planned);
			printf("\n    %s", what);
			CHECK(fabs(fetched - planned) <= 0.02 * planned + FEW_BYTES, what);
		}
		smalti_strategy_free(&strategy);
		smalti_model_close(model);
	}
}

enum { WORDS = 5 };

/* By a strategy, twice; what came to the places that time. */
static void encode_text(struct smalti_text_encoder *t5, const struct smalti_strategy *strategy, float *states,
			double bytes[PLACES])
{
	static const int32_t ids[WORDS] = {5, 7, 2, 19, 1};
	struct smalti_error error = SMALTI_NO_ERROR;
	moved_bytes(session, PLACES, bytes);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "text", 0, &error);
	const struct smalti_token_ids words = {.ids = ids, .count = WORDS};
	struct smalti_tile *hidden;
	t5->functions->encode(t5, task_group, &words, 1, strategy, &hidden);
	smalti_insert(deliver, task_group, (.x = hidden), .count = WORDS * t5->width, .sink = keep,
		      .user = states);
	smalti_tile_release(hidden);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "encoding");
	smalti_task_group_free(task_group);
	moved_bytes(session, PLACES, bytes);
}

/* What comes to a place with that part of the shards, besides weights: what two norms of each layer have
 * made, or at the first place what they read of others, with the last one's; the others' heads and columns;
 * and what was embedded in main memory, all of which the very first norm reads. */
static double text_bytes(const struct smalti_t5_config *c, double part, bool first)
{
	const double others = 1 - part, width = (double)c->width, inner = (double)c->inner;
	const double layer = (first ? 2 * others : 2) * width + others * (inner + (double)c->ff_width);
	return WORDS * sizeof(float) * ((double)c->layers * layer + (first ? 1 : part) * width);
}

/* Each device fetches its shards of the text encoder's matrices once, as many as the others whatever its
 * share is, and the first one the norms and the bias. */
static void text_weights_are_shared(void)
{
	static const struct smalti_t5_config config = {.layers = 2,
						       .vocabulary = 20,
						       .width = 256,
						       .heads = 8,
						       .head_dim = 32,
						       .inner = 256,
						       .ff_width = 8192,
						       .buckets = 32,
						       .max_distance = 128,
						       .norm_eps = 1e-6,
						       .eos_id = 1};
	static const struct {
		const char *name;
		double shares[PLACES];
		double part[PLACES]; /* of the matrices, in eighths */
		int first;
	} plans[] = {{"patch2", {0, 1, 1, 0, 0}, {0, 4, 4, 0, 0}, 1},
		     {"tensor4", {0, 1, 1, 1, 1}, {0, 2, 2, 2, 2}, 1},
		     {"ring3", {0, 0, 2, 1, 1}, {0, 0, 3, 2, 3}, 2}};
	static float expected[WORDS * 256], found[WORDS * 256], again[WORDS * 256];
	const double matrices =
	    (double)(config.layers * config.width * (4 * config.inner + 3 * config.ff_width)) * sizeof(float);
	const double norms = 5 * 256 * sizeof(float), bias = 8 * 32 * sizeof(float);
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int i = 0; i < COUNT(plans); i++) {
		double cold[PLACES], warm[PLACES];
		struct smalti_strategy strategy;
		struct smalti_task_group *weights = smalti_task_group_new(session, "weights", 0, &error);
		struct smalti_checkpoint *checkpoint = synthetic_t5(&config, 0.01);
		struct smalti_text_encoder *t5 =
		    smalti_t5_new(weights, &config, checkpoint, SMALTI_F32, &error);
		SUCCEEDS(t5 ? 0 : -1, &error, "encoder");
		SUCCEEDS(smalti_strategy_read(&strategy, plans[i].name, plans[i].shares, PLACES, &error),
			 &error, plans[i].name);
		encode_text(t5, &strategy, found, cold);
		encode_text(t5, &strategy, again, warm);
		CHECK(memcmp(found, again, sizeof(found)) == 0, plans[i].name);
		memcpy(expected, i == 0 ? found : expected, sizeof(expected));
		CHECK(memcmp(found, expected, sizeof(found)) == 0, plans[i].name);
		for (int place = 1; place < PLACES; place++) {
			char what[200];
			const double part = plans[i].part[place] / 8;
			const bool first = place == plans[i].first;
			const double share = matrices * part, fetched = cold[place] - warm[place];
			const double planned = part > 0 ? text_bytes(&config, part, first) : 0;
			snprintf(what, sizeof(what),
				 "%s: device %d fetches %.0f bytes of weights, %.0f planned, and %.0f, %.0f "
				 "planned",
				 plans[i].name, place, fetched, share, warm[place], planned);
			printf("\n    %s", what);
			CHECK(fetched >= share && fetched <= share + norms + bias + FEW_BYTES, what);
			CHECK(fabs(warm[place] - planned) <= WORDS * sizeof(int32_t), what);
		}
		smalti_strategy_free(&strategy);
		smalti_text_encoder_free(t5);
		smalti_task_group_free(weights);
		smalti_checkpoint_close(checkpoint);
	}
}

/* Times that exclude each other fill what they are of; what was before is not in it. */
static void what_devices_did(void)
{
	static float latents[4 * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_device_use before[SMALTI_MAX_NODES], uses[SMALTI_MAX_NODES];
	double bytes[PLACES];
	struct smalti_strategy strategy;
	model = embedded_open(session);
	SUCCEEDS(smalti_strategy_read(&strategy, "patch4", NULL, PLACES, &error), &error, "patch4");
	denoise(&strategy, FEW_STEPS, latents, bytes, NULL);
	const int count = smalti_devices_use(session, before);
	CHECK(count == PLACES - 1, "devices");
	const double began = smalti_now();
	denoise(&strategy, FEW_STEPS, latents, bytes, NULL);
	const double took = smalti_now() - began;
	CHECK(smalti_devices_use(session, uses) == count, "devices");
	for (int i = 0; i < count; i++) {
		struct smalti_device_use *use = &uses[i];
		CHECK(use->bytes_to > before[i].bytes_to && use->seconds > before[i].seconds, use->name);
		smalti_device_use_since(use, &before[i]);
		CHECK(bytes[use->node] == (double)use->bytes_to && use->transfers_to > 0, use->name);
		CHECK(use->seconds >= took && use->busy > 0 && use->busy <= 1, use->name);
		CHECK(use->peak_memory > 0 && use->peak_memory <= use->memory, use->name);
		if (isnan(use->seconds_to))
			continue;
		CHECK(use->seconds_to > 0 && use->seconds_to <= use->seconds, use->name);
		CHECK(use->seconds_from >= 0 && use->seconds_from <= use->seconds, use->name);
		CHECK(use->exposed >= 0 && use->hidden >= 0, use->name);
		CHECK(fabs(use->exposed + use->hidden - use->seconds_to) < 1e-9, use->name);
	}
	smalti_strategy_free(&strategy);
	smalti_model_close(model);
}

/* Most of what each device had at a time beside what the strategy says that it holds there: weights, which
 * all stay, and what the tasks of a block leave if none waits for another, which is up to four times as much.
 */
static void compare_memory(const char *name, const struct smalti_strategy *strategy)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	struct smalti_load loads[PLACES];
	const int count = smalti_devices_use(session, uses);
	CHECK(count == PLACES - 1, "devices");
	plan_loads(strategy, loads);
	for (int i = 0; i < count; i++) {
		const struct smalti_load load = loads[uses[i].node];
		const double planned = load.weights + load.activations + load.buffers;
		const double had = (double)uses[i].peak_memory;
		char what[160];
		snprintf(what, sizeof(what),
			 "%s: device %d had %.0f bytes, %.0f planned, %.0f of them weights", name,
			 (int)uses[i].node, had, planned, load.weights);
		printf("\n    %s", what);
		CHECK(had <= 1.1 * planned + 2 * FEW_BYTES &&
			  had >= load.weights + 0.25 * (planned - load.weights),
		      what);
	}
}

/* Each in a session of its own, since the most is a session's. */
static void memory_is_the_plans(void)
{
	static const char *const names[] = {"patch4",    "tensor4",    "ulysses4",
					    "pipeline4", "displaced4", "cfg2"};
	const int count = getenv("SMALTI_TEST_FULL") ? COUNT(names) : 2;
	static float latents[4 * LARGE_SIDE * LARGE_SIDE];
	side = LARGE_SIDE;
	for (int i = 0; i < count; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		double bytes[PLACES];
		struct smalti_strategy strategy;
		model = embedded_open(session);
		SUCCEEDS(smalti_strategy_read(&strategy, names[i], NULL, PLACES, &error), &error, names[i]);
		denoise(&strategy, FEW_STEPS, latents, bytes, NULL);
		compare_memory(names[i], &strategy);
		smalti_strategy_free(&strategy);
		smalti_model_close(model);
		SUCCEEDS(smalti_session_close(session, &error), &error, "close");
		session = moved_session(PLACES - 1);
	}
	side = SIDE;
}

static const struct test tests[] = {
    {"memory is the plan's", memory_is_the_plans},
    {"what devices did", what_devices_did},
    {"weights come once", weights_come_once},
    {"text weights are shared", text_weights_are_shared},
    {"only what the plan says", only_what_the_plan_says},
};

TEST_PROGRAM()
{
	session = moved_session(PLACES - 1);
	if (!session)
		return 77;
	return test_main("transfers", tests, COUNT(tests));
}
