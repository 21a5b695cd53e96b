/* SPDX-License-Identifier: Apache-2.0
 *
 * Random strategies of denoising, models and sizes: exact ones give what one memory gives, but for rounding,
 * and each gives the same bits whatever policy runs it. Places that are not there share those that are, so
 * that CPUs alone run the plans of many devices; a sample runs on two devices (SMALTI_TEST_FULL=1: as many on
 * seven, under one more policy).
 */
#include "codelets/codelets.h"
#include "driver.h"
#include "embedded.h"
#include "graphs/diffusion.h"
#include "graphs/pixart/dit.h"
#include "harness.h"
#include "jobs/model.h"
#include "judge.h"
#include "sanitized.h"
#include "synthetic.h"

#include <math.h>

enum { PLANS = SANITIZED ? 40 : 300, MODELS = 4, MAX_VALUES = 4 * 14 * 10, MAX_PLACES = 8 };
enum { CHANNELS = 4, TEXT_TOKENS = 7, STEPS = 3 };

enum { FEW_DEVICES = 2, MAX_DEVICES = MAX_PLACES - 1, SAMPLE = SANITIZED ? 2 : 8, FEW_POLICIES = 2 };

static const struct judge_schedule schedules[] = {{NULL, 1}, {"lws", 2}, {"dmdas", 2}, {"eager", 2}};
static const char *const device_policies[] = {"lws", "dmda", "eager"};

struct plan {
	char strategy[64];
	char shares[96];
	int64_t places, patches, warmup, band_tokens, size, model, branches;
	bool exact, recut; /* tokens can be cut again between steps */
};

static const int64_t sizes[][2] = {{2, 2}, {2, 34}, {6, 10}, {14, 10}};
static const int64_t heads[MODELS] = {1, 2, 3, 5};

static struct plan plans[PLANS];
static float results[PLANS][MAX_VALUES];

static int64_t draw(uint64_t *state, int64_t count)
{
	static const int64_t choices[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	return judge_draw(state, choices, (int)count);
}

/* An axis of one part is left out; the last one stays. */
static void add_axis(struct plan *plan, const char *name, int64_t parts, bool last)
{
	const size_t at = strlen(plan->strategy);
	if (parts > 1 || last)
		snprintf(plan->strategy + at, sizeof(plan->strategy) - at, "%s%lld%s", name, (long long)parts,
			 last ? "" : ".");
}

static void name_strategy(struct plan *plan, uint64_t *state)
{
	static const char *const kinds[] = {"ulysses", "tensor"};
	static const char *const ranks[] = {"patch", "ring",          "displaced",        "masked",
					    "naive", "naive-columns", "naive-alternating"};
	enum { EXACT = 2, NAIVE = 4 };
	const int64_t branches = 1 + draw(state, 2);
	const int64_t rank = draw(state, draw(state, 2) ? EXACT : COUNT(ranks));
	const int64_t stages = rank < NAIVE && draw(state, 4) == 0 ? 2 : 1;
	const int64_t parts = 1 + draw(state, 4), shards = 1 + draw(state, 2) * draw(state, 4);
	snprintf(plan->strategy, sizeof(plan->strategy), "hybrid:");
	add_axis(plan, "cfg", branches, false);
	add_axis(plan, "pipe", stages, false);
	add_axis(plan, kinds[draw(state, 2)], shards, false);
	add_axis(plan, ranks[rank], parts, true);
	plan->exact = stages == 1 && (parts == 1 || rank < EXACT);
	plan->recut = plan->exact && parts > 1 && shards == 1;
}

/* Of the places from `first` on. */
static void add_shares(struct plan *plan, uint64_t *state, int64_t first, int64_t step)
{
	const int64_t some = first + draw(state, plan->places - first);
	size_t at = strlen(plan->shares);
	for (int64_t i = 0; i < plan->places; i++) {
		const int64_t share = i < first ? 0 : draw(state, 6) + (i == some);
		at += (size_t)snprintf(plan->shares + at, sizeof(plan->shares) - at, "%s%lld",
				       i > 0      ? ":"
				       : step > 1 ? ","
						  : "",
				       (long long)share);
	}
	if (step > 1)
		snprintf(plan->shares + at, sizeof(plan->shares) - at, "@%lld", (long long)step);
}

/* Others from some steps on, where that can be. */
static void draw_shares(struct plan *plan, uint64_t *state, int64_t first)
{
	*plan->shares = '\0';
	add_shares(plan, state, first, 1);
	for (int64_t step = 2; plan->recut && step <= STEPS; step++)
		if (draw(state, 2))
			add_shares(plan, state, first, step);
}

static struct plan random_plan(uint64_t *state)
{
	struct plan plan = {.places = 1 + draw(state, MAX_PLACES)};
	name_strategy(&plan, state);
	draw_shares(&plan, state, 0);
	plan.patches = 1 + draw(state, 5);
	plan.warmup = 1 + draw(state, 3);
	plan.band_tokens = judge_draw(state, (const int64_t[]){2, 5, 8, 1000}, 4);
	plan.size = draw(state, COUNT(sizes));
	plan.model = draw(state, MODELS);
	plan.branches = 1 + draw(state, 2);
	return plan;
}

static struct smalti_denoiser *open_denoiser(struct smalti_task_group *weights,
					     struct smalti_checkpoint **checkpoint, int64_t count)
{
	const struct smalti_transformer_config config = {.layers = 2,
							 .heads = count,
							 .head_dim = 12,
							 .width = 12 * count,
							 .in_channels = CHANNELS,
							 .out_channels = 2 * CHANNELS,
							 .patch_size = 2,
							 .sample_size = 16,
							 .caption_channels = 8,
							 .interpolation_scale = 1,
							 .norm_eps = 1e-6,
							 .attention_bias = true};
	struct smalti_error error = SMALTI_NO_ERROR;
	*checkpoint = synthetic_transformer(&config, 0.1);
	struct smalti_denoiser *denoiser = smalti_dit_new(weights, &config, *checkpoint, SMALTI_F32, &error);
	SUCCEEDS(denoiser ? 0 : -1, &error, "model");
	return denoiser;
}

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

static struct smalti_cross_cache *caption(struct smalti_denoiser *denoiser,
					  struct smalti_task_group *task_group, int64_t tokens, double phase)
{
	float text[TEXT_TOKENS * 8];
	test_fill(text, tokens * denoiser->text_width, 0.07, phase);
	struct smalti_tile *hidden =
	    smalti_tile_upload(task_group, tokens, denoiser->text_width * (int64_t)sizeof(float), text);
	struct smalti_cross_cache *cache =
	    denoiser->functions->cross_cache(denoiser, task_group, hidden, tokens);
	smalti_tile_release(hidden);
	return cache;
}

/* With captions of its own. */
static void diffuse(struct smalti_session *session, struct smalti_denoiser *denoiser, const char *what,
		    struct smalti_diffusion diffusion, float *latents)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, what, 0, &error);
	diffusion.vae_factor = 8;
	diffusion.images = 1;
	diffusion.guidance = 3;
	for (int k = 0; k < diffusion.cache_count; k++)
		diffusion.caches[k] = caption(denoiser, task_group, k ? 1 : TEXT_TOKENS, 0.1 + 0.4 * k);
	struct smalti_tile *planes = smalti_diffuse(denoiser, task_group, &diffusion);
	smalti_insert(deliver, task_group, (.x = planes),
		      .count = CHANNELS * diffusion.height * diffusion.width, .sink = keep, .user = latents);
	smalti_tile_release(planes);
	for (int k = 0; k < diffusion.cache_count; k++)
		denoiser->functions->release_cross_cache(diffusion.caches[k]);
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, what);
	smalti_task_group_free(task_group);
}

static void denoise(struct smalti_session *session, struct smalti_denoiser *denoiser,
		    const struct smalti_sampler *sampler, const struct plan *plan,
		    const struct smalti_strategy *strategy, float *latents)
{
	const struct smalti_diffusion diffusion = {
	    .sampler = sampler,
	    .height = sizes[plan->size][0],
	    .width = sizes[plan->size][1],
	    .band_tokens = plan->band_tokens,
	    .strategy = strategy,
	    .seed = 7,
	    .cache_count = (int)plan->branches,
	};
	diffuse(session, denoiser, plan->strategy, diffusion, latents);
}

/* Of the largest value. */
static double apart(const float *a, const float *b, int64_t count)
{
	double largest = 0, worst = 0;
	for (int64_t i = 0; i < count; i++) {
		largest = fmax(largest, fabs((double)a[i]));
		const double off = fabs((double)a[i] - (double)b[i]);
		worst = off <= worst ? worst : off; /* NaN counts */
	}
	return worst / largest;
}

static void describe(const struct plan *plan, const char *schedule, char text[256])
{
	snprintf(text, 256,
		 "%s by %s, %lld patches, warm-up %lld, %lldx%lld in bands of %lld, %lld heads, %s",
		 plan->strategy, plan->shares, (long long)plan->patches, (long long)plan->warmup,
		 (long long)sizes[plan->size][0], (long long)sizes[plan->size][1],
		 (long long)plan->band_tokens, (long long)heads[plan->model], schedule);
}

/* With one band in one memory. */
static void compare(struct smalti_session *session, struct smalti_denoiser *denoiser,
		    const struct smalti_sampler *sampler, const struct plan *plan,
		    const struct smalti_strategy *strategy, const float *found)
{
	static const double tolerance = 1e-5;
	float one[MAX_VALUES];
	char what[256], told[320];
	struct plan alone = *plan;
	alone.band_tokens = 1000;
	denoise(session, denoiser, sampler, &alone, &smalti_strategy_none, one);
	const double off = apart(one, found, CHANNELS * sizes[plan->size][0] * sizes[plan->size][1]);
	describe(plan, "nothing", what);
	snprintf(told, sizeof(told), "%s: off by %g", what, off);
	CHECK(smalti_strategy_is_exact(strategy) || !plan->exact, what);
	CHECK(plan->exact ? off <= tolerance : isfinite(off), told);
}

static void try_plan(struct smalti_session *session, struct smalti_denoiser *denoiser,
		     const struct smalti_sampler *sampler, int i, const char *schedule, bool first)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_strategy strategy;
	float found[MAX_VALUES];
	char what[256];
	SUCCEEDS(smalti_strategy_read_cuts(&strategy, plans[i].strategy, plans[i].shares,
					   (int)plans[i].places, STEPS, &error),
		 &error, plans[i].strategy);
	strategy.patches = strategy.parts[SMALTI_AXIS_STAGE] > 1 ? plans[i].patches : 1;
	strategy.warmup = plans[i].warmup;
	denoise(session, denoiser, sampler, &plans[i], &strategy, found);
	const int64_t count = CHANNELS * sizes[plans[i].size][0] * sizes[plans[i].size][1];
	describe(&plans[i], schedule, what);
	if (first) {
		memcpy(results[i], found, sizeof(found));
		compare(session, denoiser, sampler, &plans[i], &strategy, found);
	}
	CHECK(memcmp(results[i], found, (size_t)count * sizeof(float)) == 0, what);
	smalti_strategy_free(&strategy);
}

/* Closes the session. The first results are those that later ones have to equal. */
static void try_plans_on(struct smalti_session *session, int count, const char *schedule, bool first)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *weights = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_checkpoint *checkpoint[MODELS];
	struct smalti_denoiser *denoiser[MODELS];
	struct smalti_model *model = embedded_open(session);
	struct smalti_sampler *sampler = smalti_sampler_new(&model->scheduler, STEPS, &error);
	for (int i = 0; i < MODELS; i++)
		denoiser[i] = open_denoiser(weights, &checkpoint[i], heads[i]);
	for (int i = 0; i < count; i++)
		try_plan(session, denoiser[plans[i].model], sampler, i, schedule, first);
	for (int i = 0; i < MODELS; i++) {
		smalti_denoiser_free(denoiser[i]);
		smalti_checkpoint_close(checkpoint[i]);
	}
	free(sampler);
	smalti_task_group_free(weights);
	embedded_close(session, model);
}

static void random_strategies(void)
{
	uint64_t state = 11;
	int exact = 0, cut_again = 0;
	for (int i = 0; i < PLANS; i++) {
		plans[i] = random_plan(&state);
		exact += plans[i].exact;
		cut_again += smalti_shares_cut_again(plans[i].shares);
	}
	CHECK(exact > PLANS / 3 && exact < PLANS, "both kinds");
	CHECK(cut_again > PLANS / 20, "some are cut again");
	for (int i = 0; i < COUNT(schedules); i++)
		try_plans_on(judge_session(&schedules[i]), PLANS, judge_schedule_name(&schedules[i]), i == 0);
}

/* One CPU and devices of one kind, where all runs that can. */
static struct smalti_session *device_session(int64_t devices, const char *policy, struct smalti_error *error)
{
	struct smalti_session_options options;
	smalti_session_defaults(&options);
	if (devices > FEW_DEVICES) {
		setenv("POCL_DEVICES", "basic basic basic basic basic basic basic", 0);
		setenv("SMALTI_STANDIN_DEVICES", "7", 0);
		setenv("STARPU_HOSTNAME", "many-devices", 0);
	}
	test_ask_for(&options, devices);
	options.cpus = 1;
	options.policy = policy;
	options.reproducible = true;
	return smalti_session_open(&options, error);
}

/* On devices alone, of which one or more have a share. */
static struct plan random_device_plan(uint64_t *state)
{
	struct plan plan = random_plan(state);
	plan.places = 2 + draw(state, MAX_DEVICES);
	draw_shares(&plan, state, 1);
	return plan;
}

static void random_strategies_on_devices(void)
{
	const bool all = getenv("SMALTI_TEST_FULL");
	const int count = all ? PLANS : SAMPLE;
	uint64_t state = 23;
	for (int i = 0; i < count; i++)
		plans[i] = random_device_plan(&state);
	for (int i = 0; i < (all ? COUNT(device_policies) : FEW_POLICIES); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_session *session =
		    device_session(all ? MAX_DEVICES : FEW_DEVICES, device_policies[i], &error);
		if (!session && error.code == SMALTI_ENODEV) {
			printf("\n    skipped: %s", error.message);
			return;
		}
		SUCCEEDS(session ? 0 : -1, &error, device_policies[i]);
		try_plans_on(session, count, device_policies[i], i == 0);
	}
}

/* Slices */

static struct smalti_sampler *steps_of(int64_t steps)
{
	struct smalti_sampler *sampler = calloc(1, sizeof(*sampler) + 2 * sizeof(sampler->step[0]));
	if (!sampler)
		abort();
	sampler->steps = steps;
	for (int64_t i = 0; i < steps; i++)
		sampler->step[i] = (struct smalti_sampler_step){
		    .timestep = 400, .input_scale = 1, .next = {.x = 1, .output = 1}};
	return sampler;
}

/* Between an image and a slice of whole rows or columns of it, from `first` on. */
static void slice(float *image, int64_t height, int64_t width, bool columns, int64_t first, float *part,
		  int64_t part_height, int64_t part_width, bool out)
{
	for (int64_t i = 0; i < CHANNELS * part_height * part_width; i++) {
		const int64_t x = i % part_width + (columns ? first : 0);
		const int64_t y = i / part_width % part_height + (columns ? 0 : first);
		float *value = &image[(i / part_width / part_height * height + y) * width + x];
		*(out ? &part[i] : value) = *(out ? value : &part[i]);
	}
}

/* One pass of each slice as an image of its own. */
static void pass_by_slices(struct smalti_session *session, struct smalti_denoiser *denoiser,
			   const struct smalti_strategy *strategy, int64_t height, int64_t width,
			   bool columns, float *image)
{
	struct smalti_sampler *sampler = steps_of(1);
	for (int rank = 0; rank < strategy->parts[SMALTI_AXIS_RANK]; rank++) {
		const int64_t lines = (columns ? width : height) / 2;
		const int64_t first = 2 * smalti_strategy_begin(strategy, SMALTI_AXIS_RANK, lines, rank);
		const int64_t side =
		    2 * smalti_strategy_begin(strategy, SMALTI_AXIS_RANK, lines, rank + 1) - first;
		float part[MAX_VALUES];
		const struct smalti_diffusion diffusion = {.sampler = sampler,
							   .height = columns ? height : side,
							   .width = columns ? side : width,
							   .band_tokens = 1000,
							   .strategy = &smalti_strategy_none,
							   .latents = part,
							   .cache_count = 2};
		if (side == 0)
			continue;
		slice(image, height, width, columns, first, part, diffusion.height, diffusion.width, true);
		diffuse(session, denoiser, "slice", diffusion, part);
		slice(image, height, width, columns, first, part, diffusion.height, diffusion.width, false);
	}
	free(sampler);
}

static void slices(void)
{
	static const struct {
		const char *strategy;
		bool columns[2]; /* of each pass */
		double shares[3];
	} cases[] = {{"naive2", {false, false}, {1, 1, 1}},
		     {"naive-columns3", {true, true}, {3, 1, 2}},
		     {"naive-alternating3", {false, true}, {1, 0, 4}},
		     {"hybrid:ulysses2.naive-columns2", {true, true}, {1, 2, 1}}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = judge_session(&schedules[1]);
	struct smalti_task_group *weights = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_checkpoint *checkpoint;
	struct smalti_denoiser *denoiser = open_denoiser(weights, &checkpoint, 3);
	struct smalti_sampler *sampler = steps_of(2);
	for (int i = 0; i < COUNT(cases) * COUNT(sizes); i++) {
		const int64_t height = sizes[i % COUNT(sizes)][0], width = sizes[i % COUNT(sizes)][1];
		const int c = i / COUNT(sizes);
		struct smalti_strategy strategy;
		float expected[MAX_VALUES], found[MAX_VALUES];
		SUCCEEDS(smalti_strategy_read(&strategy, cases[c].strategy, cases[c].shares, 3, &error),
			 &error, cases[c].strategy);
		test_fill(expected, CHANNELS * height * width, 0.3, 1);
		const struct smalti_diffusion diffusion = {.sampler = sampler,
							   .height = height,
							   .width = width,
							   .band_tokens = 4,
							   .strategy = &strategy,
							   .latents = expected,
							   .cache_count = 2};
		diffuse(session, denoiser, cases[c].strategy, diffusion, found);
		for (int pass = 0; pass < 2; pass++)
			pass_by_slices(session, denoiser, &strategy, height, width, cases[c].columns[pass],
				       expected);
		CHECK(apart(expected, found, CHANNELS * height * width) <= 1e-5, cases[c].strategy);
		smalti_strategy_free(&strategy);
	}
	free(sampler);
	smalti_denoiser_free(denoiser);
	smalti_checkpoint_close(checkpoint);
	smalti_task_group_free(weights);
	SUCCEEDS(smalti_session_close(session, &error), &error, "session");
}

/* Cuts that are the same make no other bits. */
static void equal_cuts(void)
{
	static const char *const shares[] = {"1:2:1", "1:2:1,1:2:1@2,1:2:1@3"};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = judge_session(&schedules[1]);
	struct smalti_task_group *weights = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_checkpoint *checkpoint;
	struct smalti_denoiser *denoiser = open_denoiser(weights, &checkpoint, 3);
	struct smalti_model *model = embedded_open(session);
	struct smalti_sampler *sampler = smalti_sampler_new(&model->scheduler, STEPS, &error);
	const struct plan plan = {.strategy = "ring", .band_tokens = 5, .size = 3, .branches = 2};
	float found[2][MAX_VALUES];
	for (int i = 0; i < 2; i++) {
		struct smalti_strategy strategy;
		SUCCEEDS(smalti_strategy_read_cuts(&strategy, "ring", shares[i], 3, STEPS, &error), &error,
			 shares[i]);
		denoise(session, denoiser, sampler, &plan, &strategy, found[i]);
		smalti_strategy_free(&strategy);
	}
	const int64_t count = CHANNELS * sizes[plan.size][0] * sizes[plan.size][1];
	CHECK(memcmp(found[0], found[1], (size_t)count * sizeof(float)) == 0, shares[1]);
	free(sampler);
	smalti_denoiser_free(denoiser);
	smalti_checkpoint_close(checkpoint);
	smalti_task_group_free(weights);
	embedded_close(session, model);
}

static const struct test tests[] = {
    {"equal cuts", equal_cuts},
    {"slices", slices},
    {"random strategies", random_strategies},
    {"on devices", random_strategies_on_devices},
};

TEST_MAIN("strategies", tests)
