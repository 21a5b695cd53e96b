/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer's forward and backward against the reference's gradients in double
 * (tests/data/train/README.md), in bands, recomputed, by any scheduler and in every precision. */
#include "golden.h"
#include "harness.h"
#include "host/pool.h"
#include "rt/counting.h"
#include "rt/session.h"
#include "stage.h"
#include "train_graph.h"

#include <math.h>
#include <stdio.h>

enum { CHANNELS = 4 };

static struct smalti_session *session;

/* Against the reference */

static const struct {
	const char *name;
	int64_t band;
	int compared; /* gradients in the file */
} references[] = {
    {"sigma", 0, 53}, {"sigma", 7, 53}, {"sigma_snr", 0, 26}, {"alpha", 0, 55},
    {"alpha", 4, 55}, {"bands", 0, 18}, {"bands", 100, 18},
};

static void agrees_with_the_reference(void)
{
	for (int i = 0; i < COUNT(references); i++) {
		const struct train_graph_case c = train_graph_case(references[i].name);
		const struct train_graph_plan plan = {.band = references[i].band, .scale = 1};
		struct train_graph_outcome o = train_graph_step(session, &c, &plan);
		golden_near(o.out, train_graph_floats(c.name, "out"), 2 * o.latent, 2e-5, "output");
		golden_near(o.gx, train_graph_floats(c.name, "dx"), o.latent, 4e-5, "gradient of the input");
		train_graph_losses(&c, &o);
		const int compared = train_graph_gradients(&c, &o);
		char what[64];
		snprintf(what, sizeof(what), "%s: %d gradients", c.name, compared);
		CHECK(compared == references[i].compared, what);
		train_graph_drop(&o);
	}
}

/* The sum of the outputs, weighted by `gout`. */
static double weighted_output(const struct train_graph_case *c, struct train_graph_plan plan, int64_t value,
			      float change)
{
	double sum = 0;
	plan.value = value;
	plan.change = change;
	struct train_graph_outcome o = train_graph_step(session, c, &plan);
	for (int64_t i = 0; i < 2 * o.latent; i++)
		sum += (double)o.out[i] * (double)plan.gout[i];
	train_graph_drop(&o);
	return sum;
}

/* Values of all tensors in turn, at random places: what the output changes by, and what the gradient says. */
static void agrees_with_differences(void)
{
	enum { VALUES = 200 };
	const float step = 0x1p-7F;
	struct train_graph_case c = train_graph_case("sigma");
	uint64_t state = 1;
	double wrong = 0, all = 0;
	c.samples = 1;
	float *gout = train_graph_room(2 * CHANNELS * c.height * c.width, sizeof(*gout));
	test_fill(gout, 2 * CHANNELS * c.height * c.width, 0.7, 0.3);
	const struct train_graph_plan plan = {.scale = 1, .gout = gout};
	struct train_graph_outcome o = train_graph_step(session, &c, &plan);
	for (int i = 0; i < VALUES; i++) {
		const int64_t p = i % o.parameters, count = o.first[p + 1] - o.first[p];
		const int64_t value =
		    o.first[p] + (int64_t)((double)(test_random(&state) + 1) / 2 * (double)count) % count;
		const double slope =
		    (weighted_output(&c, plan, value, step) - weighted_output(&c, plan, value, -step)) /
		    (2 * (double)step);
		const double difference = slope - (double)o.gradients[value];
		wrong += difference * difference;
		all += slope * slope;
		CHECK(fabs(difference) < 2e-3 + 1e-3 * fabs(slope), o.name[p]);
	}
	CHECK(sqrt(wrong / all) < 1e-3, "all differences");
	train_graph_drop(&o);
	free(gout);
}

static void names_what_is_missing(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config = train_graph_case("sigma").config;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "train", 0, &error);
	struct smalti_parameters *parameters =
	    smalti_parameters_new(task_group, &smalti_dit_trained, &config, &smalti_strategy_none, &error);
	config.layers++;
	const int status = smalti_trained_new(&config, parameters, SMALTI_F32, &error) ? 0 : -1;
	FAILS(status, &error, SMALTI_EINVAL, "a block more", "transformer_blocks.2.attn1.to_q.weight");
	smalti_parameters_free(parameters);
	smalti_task_group_free(task_group);
}

/* Other ways to compute it */

static void recomputing_changes_no_bit(void)
{
	static const enum smalti_dtype precisions[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	const struct train_graph_case c = train_graph_case("alpha");
	for (size_t p = 0; p < COUNT_OF(precisions); p++) {
		struct train_graph_plan plan = {.compute = precisions[p], .band = 4, .scale = 1024};
		struct train_graph_outcome kept = train_graph_step(session, &c, &plan);
		for (int i = 0; i < 2 * (c.config.layers + 1); i++) {
			plan.recomputed = i / 2;
			plan.bounded = i % 2;
			struct train_graph_outcome again = train_graph_step(session, &c, &plan);
			CHECK(train_graph_same_bits(&kept, &again), smalti_dtype_name(precisions[p]));
			train_graph_drop(&again);
		}
		train_graph_drop(&kept);
	}
}

/* The bytes that a plan's sample takes, and those of the rest of a step. */
static int64_t counted(const struct train_graph_case *c, const struct train_graph_plan *plan, int64_t *around)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *counts = smalti_session_open_counting(1, false, &error);
	struct train_graph_outcome o = train_graph_step(counts, c, plan);
	const int64_t bytes = counts->counting->at[0].bytes.max;
	*around = o.around;
	train_graph_drop(&o);
	smalti_session_close(counts, NULL);
	return bytes;
}

/* Of tiles that were there at the same time. */
static int64_t measured(const struct train_graph_case *c, const struct train_graph_plan *plan,
			const char *policy)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_pool_state state;
	struct smalti_session *on =
	    policy ? stage_session(policy, 2) : smalti_session_open_sequential(&error);
	struct train_graph_outcome o = train_graph_step(on, c, plan);
	smalti_pool_state(on->pool, &state);
	train_graph_drop(&o);
	smalti_session_close(on, NULL);
	return state.max_used;
}

/* In the order of insertion, a block that is computed again leaves its tiles less, but those of its input. */
static void compare_blocks(const struct train_graph_case *c, struct train_graph_plan plan, int64_t found)
{
	int64_t around;
	char what[160];
	const int64_t planned = counted(c, &plan, &around);
	plan.recomputed++;
	const double less = (double)(found - measured(c, &plan, NULL));
	const double expected = (double)(planned - counted(c, &plan, &around));
	snprintf(what, sizeof(what), "%s, %s: a block takes %.0f bytes, %.0f are counted", c->name,
		 smalti_dtype_name(plan.compute), less, expected);
	printf("\n    %s", what);
	CHECK(!SMALTI_POOLED || fabs(less - expected) <= 0.1 * expected, what);
}

/* Layers with barriers between them keep to what is counted in any order of their tasks. */
static void memory_is_what_is_counted(void)
{
	static const struct {
		const char *name;
		enum smalti_dtype compute;
		int64_t band, recomputed;
		const char *policy; /* NULL: without StarPU */
	} cases[] = {
	    {"alpha", SMALTI_F32, 100, 0, NULL},    {"alpha", SMALTI_F32, 4, 1, NULL},
	    {"alpha", SMALTI_BF16, 4, 0, NULL},     {"alpha", SMALTI_BF16, 7, 2, NULL},
	    {"alpha", SMALTI_F16, 100, 0, NULL},    {"sigma", SMALTI_F32, 7, 0, NULL},
	    {"bands", SMALTI_F32, 100, 0, NULL},    {"bands", SMALTI_BF16, 50, 1, NULL},
	    {"bands", SMALTI_F32, 50, 1, "random"}, {"bands", SMALTI_F16, 30, 0, "lws"},
	};
	smalti_session_close(session, NULL);
	for (int i = 0; i < COUNT(cases); i++) {
		struct train_graph_case c = train_graph_case(cases[i].name);
		const bool sequential = !cases[i].policy;
		const struct train_graph_plan plan = {.compute = cases[i].compute,
						      .band = cases[i].band,
						      .recomputed = cases[i].recomputed,
						      .grain = SMALTI_GRAIN_OPERATION,
						      .bounded = true,
						      .forget = true,
						      .scale = 1};
		char what[160];
		int64_t around;
		c.samples = 1;
		const int64_t found = measured(&c, &plan, cases[i].policy);
		const int64_t planned = counted(&c, &plan, &around);
		snprintf(what, sizeof(what), "%s, %s, bands of %lld, %lld blocks again: %lld of %lld bytes",
			 c.name, smalti_dtype_name(plan.compute), (long long)plan.band,
			 (long long)plan.recomputed, (long long)(found - around), (long long)planned);
		printf("\n    %s", what);
		CHECK(found - around <= planned, what);
		CHECK(!SMALTI_POOLED || !sequential || (double)(found - around) >= 0.45 * (double)planned,
		      what);
		if (sequential && cases[i].recomputed + 1 < c.config.layers)
			compare_blocks(&c, plan, found);
	}
	session = stage_session("lws", 2);
}

static void schedulers_change_no_bit(void)
{
	const struct train_graph_case c = train_graph_case("alpha");
	const struct train_graph_plan plan = {.band = 4, .scale = 1};
	struct train_graph_outcome here = train_graph_step(session, &c, &plan);
	smalti_session_close(session, NULL);
	for (size_t i = 0; i < TRAIN_GRAPH_SCHEDULERS; i++) {
		struct smalti_session *other =
		    stage_session(train_graph_schedulers[i].policy, train_graph_schedulers[i].cpus);
		struct train_graph_outcome there = train_graph_step(other, &c, &plan);
		CHECK(train_graph_same_bits(&here, &there), train_graph_schedulers[i].policy);
		train_graph_drop(&there);
		smalti_session_close(other, NULL);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	session = smalti_session_open_sequential(&error);
	struct train_graph_outcome sequential = train_graph_step(session, &c, &plan);
	CHECK(train_graph_same_bits(&here, &sequential), "without StarPU");
	train_graph_drop(&sequential);
	smalti_session_close(session, NULL);
	session = stage_session("lws", 2);
	train_graph_drop(&here);
}

static void grains_change_no_bit(void)
{
	static const int64_t bands[] = {0, 4};
	const struct train_graph_case c = train_graph_case("alpha");
	for (size_t b = 0; b < COUNT_OF(bands); b++) {
		struct train_graph_plan plan = {.band = bands[b], .scale = 1, .recomputed = 1};
		struct train_graph_outcome chosen = train_graph_step(session, &c, &plan);
		for (int grain = SMALTI_GRAIN_OPERATION; grain <= SMALTI_GRAIN_PASS; grain++) {
			plan.grain = (enum smalti_grain)grain;
			struct train_graph_outcome other = train_graph_step(session, &c, &plan);
			CHECK(train_graph_same_bits(&chosen, &other), "grain");
			train_graph_drop(&other);
		}
		train_graph_drop(&chosen);
	}
}

static void bands_change_rounding_alone(void)
{
	static const int64_t bands[] = {1, 7, 8};
	const struct train_graph_case c = train_graph_case("sigma");
	struct train_graph_plan plan = {.scale = 1};
	struct train_graph_outcome whole = train_graph_step(session, &c, &plan);
	for (size_t i = 0; i < COUNT_OF(bands); i++) {
		plan.band = bands[i];
		struct train_graph_outcome cut = train_graph_step(session, &c, &plan);
		golden_near(cut.out, whole.out, 2 * cut.latent, 1e-5, "output");
		for (int64_t p = 0; p < cut.parameters; p++)
			if (!train_graph_is_rounding(cut.name[p]))
				golden_near(cut.gradients + cut.first[p], whole.gradients + cut.first[p],
					    cut.first[p + 1] - cut.first[p], 1e-5, cut.name[p]);
		train_graph_drop(&cut);
	}
	train_graph_drop(&whole);
}

/* Operands of 16 bits: how far all gradients, each tensor and the output may be off. */
static const struct {
	enum smalti_dtype compute;
	double scale, all, each, out;
} precisions[] = {
    {SMALTI_BF16, 1, 0.012, 0.04, 0.012},
    {SMALTI_F16, 4096, 0.002, 0.005, 0.0015},
};

static void compare_rounded(const struct train_graph_case *c, size_t p, int64_t band)
{
	const struct train_graph_plan exact = {.band = band, .scale = 1};
	const struct train_graph_plan plan = {
	    .compute = precisions[p].compute, .band = band, .scale = precisions[p].scale};
	struct train_graph_outcome expected = train_graph_step(session, c, &exact),
				   found = train_graph_step(session, c, &plan);
	char what[160];
	const double all = train_graph_distance(&found, found.gradients, expected.gradients) /
			   train_graph_distance(&expected, expected.gradients, NULL);
	snprintf(what, sizeof(what), "%s, %s: %.2e", c->name, smalti_dtype_name(plan.compute), all);
	CHECK(all <= precisions[p].all && all > 1e-5, what);
	golden_near(found.out, expected.out, 2 * found.latent, precisions[p].out, what);
	for (int64_t t = 0; t < found.parameters; t++) {
		struct train_graph_outcome one = found;
		one.parameters = 1;
		one.first = found.first + t;
		one.name = found.name + t;
		const double off = train_graph_distance(&one, found.gradients, expected.gradients);
		snprintf(what, sizeof(what), "%s, %s, %s: %.2e", c->name, smalti_dtype_name(plan.compute),
			 one.name[0], off / train_graph_distance(&one, expected.gradients, NULL));
		CHECK(off <= precisions[p].each * train_graph_distance(&one, expected.gradients, NULL), what);
	}
	train_graph_drop(&expected);
	train_graph_drop(&found);
}

static void rounds_operands_alone(void)
{
	static const char *const names[] = {"sigma", "alpha", "bands"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const struct train_graph_case c = train_graph_case(names[i]);
		for (size_t p = 0; p < COUNT_OF(precisions); p++)
			compare_rounded(&c, p, 100);
	}
}

static const struct test tests[] = {
    {"agrees with the reference", agrees_with_the_reference},
    {"agrees with differences", agrees_with_differences},
    {"names what is missing", names_what_is_missing},
    {"recomputing changes no bit", recomputing_changes_no_bit},
    {"memory is what is counted", memory_is_what_is_counted},
    {"schedulers change no bit", schedulers_change_no_bit},
    {"grains change no bit", grains_change_no_bit},
    {"bands change rounding alone", bands_change_rounding_alone},
    {"rounds operands alone", rounds_operands_alone},
};

TEST_PROGRAM()
{
	session = stage_session("lws", 2);
	const int status = test_main("train graph", tests, COUNT(tests));
	smalti_session_close(session, NULL);
	train_graph_close();
	return status;
}
