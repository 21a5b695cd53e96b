/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/config.h"
#include "harness.h"
#include "samplers/noise.h"
#include "samplers/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4 * 4 * 4, MAX_HISTORY = SMALTI_SAMPLER_HISTORY };

#define DPM        SMALTI_SCHEDULER_DPM_SOLVER
#define UNIPC      SMALTI_SCHEDULER_UNIPC
#define EULER      SMALTI_SCHEDULER_EULER
#define EULER_A    SMALTI_SCHEDULER_EULER_ANCESTRAL
#define HEUN_CLASS SMALTI_SCHEDULER_HEUN
#define DDIM       SMALTI_SCHEDULER_DDIM
#define LCM        SMALTI_SCHEDULER_LCM
#define SA         SMALTI_SCHEDULER_SA_SOLVER
#define DDPM       SMALTI_SCHEDULER_DDPM
#define FLOW_EULER SMALTI_SCHEDULER_FLOW_EULER
#define FLOW_HEUN  SMALTI_SCHEDULER_FLOW_HEUN

/* The class defaults, which are PixArt's values. */
static const struct smalti_scheduler_config defaults = {
    .scheduler = SMALTI_SCHEDULER_DPM_SOLVER,
    .train_timesteps = 1000,
    .beta_start = 0.0001,
    .beta_end = 0.02,
    .solver_order = 2,
    .lower_order_final = true,
    .flow_shift = 1,
    .lambda_min_clipped = -INFINITY,
    .predict_x0 = true,
    .predictor_order = 2,
    .corrector_order = 2,
    .clip_sample_range = 1,
    .set_alpha_to_one = true,
    .original_inference_steps = 50,
    .timestep_scaling = 10,
};

/* One change of the defaults. */
enum variant {
	PLAIN,
	SIGMA_MIN,
	HEUN,
	LEADING,
	OFFSET_1,
	OFFSET_60,
	TRAILING,
	KARRAS,
	EXPONENTIAL,
	BETA,
	ORDER_1,
	ORDER_3,
	ORDER_3_BH1,
	SDE,
	NOISE_PREDICTING,
	NOISE_PREDICTING_TO_0,
	BH1_TO_0,
	CLIPPED,
	ABOVE_ALL,
	LEARNED,
	VELOCITY,
	SAMPLE,
	BETA_TINY,
	BETA_HUGE,
};

static struct smalti_scheduler_config configuration(enum smalti_scheduler scheduler, enum variant variant)
{
	struct smalti_scheduler_config config = defaults;
	config.scheduler = scheduler;
	if (scheduler >= FLOW_EULER) {
		config.sigmas = SMALTI_SIGMAS_FLOW;
		config.prediction = SMALTI_PREDICTS_FLOW;
	}
	if (variant == SIGMA_MIN || variant == NOISE_PREDICTING || variant == ORDER_3_BH1)
		config.final_sigma = SMALTI_FINAL_SIGMA_MIN;
	config.solver_type = variant == HEUN ? SMALTI_SOLVER_HEUN : SMALTI_SOLVER_MIDPOINT;
	config.solver_order = variant == ORDER_1 ? 1 : variant == ORDER_3 || variant == ORDER_3_BH1 ? 3 : 2;
	config.bh = variant == ORDER_3_BH1 || variant == BH1_TO_0 ? SMALTI_BH1 : SMALTI_BH2;
	if (variant == SDE)
		config.algorithm = SMALTI_SDE_DPM_SOLVER_PP;
	if (variant == NOISE_PREDICTING || variant == NOISE_PREDICTING_TO_0) {
		config.algorithm = SMALTI_DPM_SOLVER_EPSILON;
		config.predict_x0 = false;
	}
	config.lambda_min_clipped = variant == ABOVE_ALL ? 10 : -INFINITY;
	config.variance = variant == LEARNED ? SMALTI_VARIANCE_OTHER : SMALTI_VARIANCE_SMALL;
	config.steps_offset = variant == OFFSET_1 ? 1 : variant == OFFSET_60 ? 60 : 0;
	if (variant == KARRAS)
		config.sigmas = SMALTI_SIGMAS_KARRAS;
	if (variant == EXPONENTIAL)
		config.sigmas = SMALTI_SIGMAS_EXPONENTIAL;
	if (variant == BETA)
		config.sigmas = SMALTI_SIGMAS_BETA;
	config.clip_sample = variant == CLIPPED;
	if (variant == LEADING || variant == OFFSET_1 || variant == OFFSET_60)
		config.spacing = SMALTI_SPACING_LEADING;
	if (variant == TRAILING)
		config.spacing = SMALTI_SPACING_TRAILING;
	if (variant == VELOCITY)
		config.prediction = SMALTI_PREDICTS_V;
	if (variant == SAMPLE)
		config.prediction = SMALTI_PREDICTS_SAMPLE;
	if (variant == BETA_TINY)
		config.beta_start = 1e-9;
	if (variant == BETA_HUGE)
		config.beta_end = 0.9;
	return config;
}

static struct smalti_sampler *sampler_of(enum smalti_scheduler scheduler, enum variant variant, int64_t steps,
					 const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_scheduler_config config = configuration(scheduler, variant);
	struct smalti_sampler *sampler = smalti_sampler_new(&config, steps, &error);
	SUCCEEDS(sampler ? 0 : -1, &error, what);
	return sampler;
}

static void timesteps_are_those_of_the_reference(void)
{
	static const struct {
		const char *what;
		enum smalti_scheduler scheduler;
		enum variant variant;
		int64_t steps;
		int known;
		double first[25];
	} cases[] = {
	    {"dpm 8", DPM, PLAIN, 8, 8, {999, 874, 749, 624, 500, 375, 250, 125}},
	    {"dpm 10", DPM, PLAIN, 10, 10, {999, 899, 799, 699, 599, 500, 400, 300, 200, 100}},
	    {"dpm 14",
	     DPM,
	     PLAIN,
	     14,
	     14,
	     {999, 928, 856, 785, 714, 642, 571, 500, 428, 357, 285, 214, 143, 71}},
	    {"dpm 15",
	     DPM,
	     PLAIN,
	     15,
	     15,
	     {999, 932, 866, 799, 733, 666, 599, 533, 466, 400, 333, 266, 200, 133, 67}},
	    {"sa 25", SA, PLAIN, 25, 25, {999, 959, 919, 879, 839, 799, 759, 719, 679, 639, 599, 559, 519,
					  480, 440, 400, 360, 320, 280, 240, 200, 160, 120, 80,  40}},
	    {"dpm 1", DPM, PLAIN, 1, 1, {999}},
	    {"dpm leading", DPM, LEADING, 4, 4, {800, 600, 400, 200}},
	    {"dpm leading, offset", DPM, OFFSET_1, 4, 4, {801, 601, 401, 201}},
	    {"dpm trailing", DPM, TRAILING, 3, 3, {999, 666, 332}},
	    {"dpm karras", DPM, KARRAS, 20, 20, {999, 971, 940, 908, 872, 833, 790, 743, 689, 627,
						 556, 472, 373, 265, 164, 88,  41,  16,  4,   0}},
	    {"dpm karras 1", DPM, KARRAS, 1, 1, {999}},
	    {"euler", EULER, PLAIN, 20, 2, {999, 946.42108154296875}},
	    {"euler trailing", EULER, TRAILING, 1, 1, {999}},
	    {"ddim linspace", DDIM, PLAIN, 25, 4, {999, 957, 916, 874}},
	    {"ddim leading", DDIM, LEADING, 20, 3, {950, 900, 850}},
	    {"lcm 1", LCM, PLAIN, 1, 1, {999}},
	    {"lcm 4", LCM, PLAIN, 4, 4, {999, 759, 499, 259}},
	    {"lcm 8", LCM, PLAIN, 8, 8, {999, 879, 759, 639, 499, 379, 259, 139}},
	    {"ddpm", DDPM, PLAIN, 20, 3, {999, 946, 894}},
	    {"ddpm 1", DDPM, PLAIN, 1, 1, {400}},
	    {"heun", HEUN_CLASS, PLAIN, 4, 7, {999, 666, 666, 333, 333, 0, 0}},
	    {"flow euler", FLOW_EULER, PLAIN, 9, 2, {1000, 875.125}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_sampler *sampler =
		    sampler_of(cases[i].scheduler, cases[i].variant, cases[i].steps, cases[i].what);
		for (int k = 0; sampler && k < cases[i].known; k++)
			CHECK(sampler->step[k].timestep == cases[i].first[k], cases[i].what);
		free(sampler);
	}
}

static void coefficients_are_those_of_the_reference(void)
{
	static const double rows[20][3] = {
	    {0.9999661280707856, 0.0040444289801829, 0},
	    {0.9999164336672964, 0.009130522057831377, -0.002937354678874847},
	    {0.9998045317239694, 0.013582179224455083, -0.004361356174424854},
	    {0.9995665712033797, 0.019640502306759906, -0.006294316991119513},
	    {0.9990889591361778, 0.02760752197275285, -0.008829832232874707},
	    {0.9981844947256413, 0.03772836283851924, -0.012043988114126008},
	    {0.9965683833121369, 0.05015438828797559, -0.01598624148070492},
	    {0.9938417304423585, 0.06492681374788283, -0.02067843870487396},
	    {0.9894901893845948, 0.08200048467824768, -0.02612830363109035},
	    {0.983321393338705, 0.09849433537964042, -0.031039217949503997},
	    {0.9736041320731277, 0.12331772574133838, -0.04013819449955084},
	    {0.9604771682186765, 0.14673035081532096, -0.04747963043495197},
	    {0.9428041863315009, 0.17451871984093023, -0.05717361962983585},
	    {0.919449871829362, 0.20762966607215827, -0.06921095568135081},
	    {0.8886762140908219, 0.24937138053667932, -0.08509983947035747},
	    {0.8473915488591564, 0.30603876455131485, -0.10778454166489977},
	    {0.7893353994995562, 0.39076080366528726, -0.14374021442190632},
	    {0.6998105519705395, 0.5361750169614531, -0.21043980018425495},
	    {0.5353163284953126, 0.8553070129759032, -0.37691894491460043},
	    {0, 1, 0},
	};
	struct smalti_sampler *sampler = sampler_of(DPM, PLAIN, 20, "dpm 20");
	for (int i = 0; sampler && i < 20; i++) {
		const struct smalti_sampler_terms *next = &sampler->step[i].next;
		CU_ASSERT_DOUBLE_EQUAL(next->x, rows[i][0], 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(next->m, rows[i][1], 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(next->last_m[0], rows[i][2], 1e-12);
		CU_ASSERT_EQUAL(sampler->step[i].draws_noise, false);
	}
	/* x0 = (x - sigma · output) / alpha at the first and the last level of the table */
	CU_ASSERT_DOUBLE_EQUAL(sampler->step[0].prediction.output, -157.4072723388672, 1e-10);
	CU_ASSERT_DOUBLE_EQUAL(sampler->step[0].prediction.x, 1 / 0.006352818571, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(sampler->step[19].prediction.output, -0.1760101169347763, 1e-12);
	CU_ASSERT_EQUAL(sampler->initial_sigma, 1);
	CU_ASSERT_EQUAL(sampler->history, 1);
	free(sampler);
}

/* Runs the first `steps` of the sampler on the model of docs/reference.md 9.4, in parts of `part`
 * elements. The history starts as NaN: nothing of it may be read before it is written. */
static void run(const struct smalti_sampler *sampler, int64_t steps, int64_t part, float *x)
{
	float output[VALUES], noise[VALUES], history[VALUES * MAX_HISTORY];
	struct smalti_generator generator;
	smalti_generator_seed(&generator, 0);
	for (int k = 0; k < VALUES * MAX_HISTORY; k++)
		history[k] = NAN;
	for (int k = 0; k < VALUES; k++)
		x[k] = (float)(1.5 * sin(0.7 * k + 0.1) * sampler->initial_sigma);
	for (int64_t i = 0; i < steps; i++) {
		const struct smalti_sampler_step *step = &sampler->step[i];
		for (int k = 0; k < VALUES; k++) {
			double scaled = x[k] * step->input_scale;
			output[k] = (float)(0.97 * scaled + 0.03 * sin(2 * scaled + step->timestep / 250));
		}
		if (step->draws_noise)
			smalti_randn(&generator, SMALTI_F32, VALUES, noise);
		for (int64_t k = 0; k < VALUES; k += part) {
			int64_t count = k + part < VALUES ? part : VALUES - k;
			smalti_sampler_apply(step, count, output + k, step->draws_noise ? noise + k : NULL,
					     x + k, sampler->history ? history + k * sampler->history : NULL);
		}
	}
}

/* Every row of docs/reference.md 9.4. */
static void trajectories_are_those_of_the_reference(void)
{
	static const struct {
		struct {
			const char *what;
			enum smalti_scheduler scheduler;
			enum variant variant;
			int64_t steps, run;
		} of;
		double expected[9]; /* sum, sum of sizes, x at some places */
	} rows[] = {
	    {{"dpm 20 after 1", DPM, PLAIN, 20, 1},
	     {0.0651892424, 62.3399363, 0.17006993, 1.0991349, 1.5124063, 1.203455, -0.75559878, -0.71876687,
	      0.34921569}},
	    {{"dpm 20 after 2", DPM, PLAIN, 20, 2},
	     {-0.023604095, 63.6062461, 0.18187264, 1.1187526, 1.5269277, 1.2218913, -0.77733004, -0.73950893,
	      0.3657884}},
	    {{"dpm 20 after 19", DPM, PLAIN, 20, 19},
	     {1.01683046, 43.4089706, 0.095904484, 0.8061223, 1.0672646, 0.87494099, -0.55289423, -0.53084391,
	      0.24084468}},
	    {{"dpm 20", DPM, PLAIN, 20, 20},
	     {0.851795323, 36.3936466, 0.078988589, 0.67575741, 0.89764243, 0.73410624, -0.46284243,
	      -0.44436547, 0.20010032}},
	    {{"dpm 14", DPM, PLAIN, 14, 14},
	     {0.83556781, 35.6135399, 0.074766599, 0.66144794, 0.88295305, 0.71962094, -0.45256528,
	      -0.43453026, 0.19273238}},
	    {{"dpm 8", DPM, PLAIN, 8, 8},
	     {0.884622708, 31.8626251, 0.053451046, 0.59694898, 0.81346434, 0.65382308, -0.4030163,
	      -0.38736609, 0.15788493}},
	    {{"dpm 1", DPM, PLAIN, 1, 1},
	     {-51.8983767, 433.60274, 5.0254035, 5.7208018, 4.009078, 5.2212458, -6.1471663, -5.7034259,
	      6.2421017}},
	    {{"dpm 20 sigma_min", DPM, SIGMA_MIN, 20, 20},
	     {0.870767914, 40.2439509, 0.093133926, 0.74412793, 0.98348957, 0.80702084, -0.51260161,
	      -0.49196008, 0.22701651}},
	    {{"dpm 20 heun", DPM, HEUN, 20, 20},
	     {0.84830609, 36.4533106, 0.078456901, 0.67684442, 0.90012658, 0.73554963, -0.46343893,
	      -0.44493166, 0.19958992}},
	    {{"dpm 20 trailing", DPM, TRAILING, 20, 20},
	     {0.85198471, 36.4233272, 0.079096913, 0.67628455, 0.89830858, 0.73466957, -0.46322122,
	      -0.4447276, 0.2003065}},
	    {{"dpm 20 karras", DPM, KARRAS, 20, 20},
	     {0.782325931, 37.3235244, 0.081981689, 0.68951416, 0.9208014, 0.75004631, -0.4723905,
	      -0.45312077, 0.20416379}},
	    {{"euler 20", EULER, PLAIN, 20, 20},
	     {0.947370633, 35.9543965, 0.088476218, 0.66874123, 0.87054771, 0.72203052, -0.4604744,
	      -0.44234079, 0.21167395}},
	    {{"ddim 20 leading", DDIM, LEADING, 20, 20},
	     {0.955349766, 35.0917527, 0.074342065, 0.65749919, 0.86475539, 0.71250129, -0.44880366,
	      -0.43137583, 0.19419959}},
	    {{"lcm 4", LCM, PLAIN, 4, 4},
	     {-2.45329085, 12.6746189, -0.33599082, -0.10315817, -0.15866804, 0.021704325, 0.42943883,
	      -0.25049216, -0.24832453}},
	    {{"sa-solver 25", SA, PLAIN, 25, 25},
	     {3.28198969, 28.5601365, -0.81433582, 0.17556123, 0.15582491, 0.34466726, 0.12905879,
	      -0.35213733, -0.80267388}},
	};
	static const int at[] = {0, 1, 2, 21, 32, 62, 63};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct smalti_sampler *sampler =
		    sampler_of(rows[i].of.scheduler, rows[i].of.variant, rows[i].of.steps, rows[i].of.what);
		if (!sampler)
			continue;
		float x[VALUES];
		run(sampler, rows[i].of.run, VALUES, x);
		double sum = 0, sizes = 0;
		for (int k = 0; k < VALUES; k++) {
			sum += x[k];
			sizes += fabs(x[k]);
		}
		CHECK(fabs(sum - rows[i].expected[0]) <= VALUES * 2e-5, rows[i].of.what);
		CHECK(fabs(sizes - rows[i].expected[1]) <= VALUES * 2e-5, rows[i].of.what);
		for (int k = 0; k < 7; k++)
			CHECK(fabs(x[at[k]] - rows[i].expected[2 + k]) <= 2e-5, rows[i].of.what);
		free(sampler);
	}
}

/* The cut into parts must not be visible, whatever the scheduler keeps. */
static void parts_give_the_bits_of_the_whole(void)
{
	for (int scheduler = 0; scheduler < SMALTI_SCHEDULERS; scheduler++) {
		struct smalti_sampler *sampler = sampler_of(scheduler, PLAIN, 7, "7 steps");
		float whole[VALUES], parts[VALUES];
		run(sampler, sampler->steps, VALUES, whole);
		run(sampler, sampler->steps, 13, parts);
		CU_ASSERT_EQUAL(memcmp(whole, parts, sizeof(whole)), 0);
		free(sampler);
	}
}

/* A model that knows the clean latents must be led to them from any number of steps. */
static void a_perfect_model_is_followed(void)
{
	static const struct {
		enum smalti_scheduler scheduler;
		enum variant variant;
		int64_t steps;
	} cases[] = {
	    {DPM, PLAIN, 1},
	    {DPM, PLAIN, 2},
	    {DPM, PLAIN, 1000},
	    {DPM, TRAILING, 1000},
	    {DPM, LEADING, 999},
	    {DPM, KARRAS, 1},
	    {DPM, KARRAS, 1000},
	    {DPM, ORDER_1, 9},
	    {DPM, SIGMA_MIN, 30},
	    {DPM, VELOCITY, 20},
	    {DPM, SAMPLE, 20},
	    {EULER, PLAIN, 2},
	    {EULER, PLAIN, 1000},
	    {EULER, KARRAS, 12},
	    {EULER, LEADING, 12},
	    {EULER, VELOCITY, 12},
	    {EULER, SAMPLE, 12},
	    {EULER, TRAILING, 1},
	    {DDIM, PLAIN, 25},
	    {DDIM, LEADING, 1000},
	    {DDIM, TRAILING, 1},
	    {DDIM, VELOCITY, 25},
	    {DDIM, SAMPLE, 25},
	    {LCM, PLAIN, 1},
	    {LCM, PLAIN, 50},
	    {LCM, VELOCITY, 4},
	    {SA, PLAIN, 1},
	    {SA, PLAIN, 1000},
	    {SA, KARRAS, 15},
	    {SA, VELOCITY, 25},
	    {DDPM, PLAIN, 1},
	    {DDPM, CLIPPED, 1},
	    {DDIM, CLIPPED, 25},
	    {DDPM, PLAIN, 20},
	    {DPM, ORDER_3, 20},
	    {DPM, ORDER_3, 1000},
	    {DPM, SDE, 12},
	    {DPM, EXPONENTIAL, 1000},
	    {DPM, BETA, 1000},
	    {UNIPC, PLAIN, 1},
	    {UNIPC, PLAIN, 1000},
	    {UNIPC, ORDER_3, 1000},
	    {UNIPC, ORDER_3_BH1, 30},
	    {UNIPC, KARRAS, 1000},
	    {UNIPC, SAMPLE, 12},
	    {UNIPC, TRAILING, 1000},
	    {EULER_A, PLAIN, 12},
	    {EULER_A, BETA, 12},
	    {HEUN_CLASS, PLAIN, 1000},
	    {HEUN_CLASS, VELOCITY, 12},
	    {HEUN_CLASS, EXPONENTIAL, 12},
	    {FLOW_EULER, PLAIN, 1},
	    {FLOW_HEUN, PLAIN, 30},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_sampler *sampler =
		    sampler_of(cases[i].scheduler, cases[i].variant, cases[i].steps, "perfect");
		if (!sampler)
			continue;
		float x[2] = {(float)(0.7 * sampler->initial_sigma), (float)(-2 * sampler->initial_sigma)};
		float output[2], noise[2] = {0, 0}, history[2 * MAX_HISTORY] = {0};
		for (int64_t s = 0; s < sampler->steps; s++) {
			const struct smalti_sampler_step *step = &sampler->step[s];
			for (int k = 0; k < 2; k++)
				output[k] = (float)(((k ? -0.75 : 0.25) - step->prediction.x * x[k]) /
						    step->prediction.output);
			smalti_sampler_apply(step, 2, output, noise, x, history);
		}
		/* Where the last level is sigma_min its noise is left. */
		CU_ASSERT_DOUBLE_EQUAL(x[0], 0.25, 0.02);
		CU_ASSERT_DOUBLE_EQUAL(x[1], -0.75, 0.02);
		free(sampler);
	}
}

static void predictions_are_clamped_when_asked(void)
{
	for (int clipped = 0; clipped < 2; clipped++) {
		struct smalti_sampler *sampler = sampler_of(DDPM, clipped ? CLIPPED : PLAIN, 1, "dmd");
		float x[] = {0, 0, 0}, output[] = {1, -0.1f, -1};
		smalti_sampler_apply(sampler->step, 3, output, NULL, x, NULL);
		double ratio = 0.898013353 / 0.439968169;
		CU_ASSERT_DOUBLE_EQUAL(x[0], clipped ? -1 : -ratio, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(x[1], 0.1 * ratio, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(x[2], clipped ? 1 : ratio, 1e-6);
		free(sampler);
	}
}

static void noise_is_drawn_where_the_reference_draws(void)
{
	static const struct {
		enum smalti_scheduler scheduler;
		enum variant variant;
		int draws, history;
	} cases[] = {
	    {DPM, PLAIN, 0, 1},     {DPM, ORDER_3, 0, 2},      {DPM, SDE, 5, 1},       {EULER, PLAIN, 0, 0},
	    {DDIM, PLAIN, 0, 0},    {LCM, PLAIN, 4, 0},        {SA, PLAIN, 5, 3},      {UNIPC, PLAIN, 0, 3},
	    {UNIPC, ORDER_3, 0, 4}, {HEUN_CLASS, PLAIN, 0, 2}, {EULER_A, PLAIN, 5, 0}, {DDPM, PLAIN, 4, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_sampler *sampler =
		    sampler_of(cases[i].scheduler, cases[i].variant, 5, "5 steps");
		int draws = 0;
		for (int64_t s = 0; s < sampler->steps; s++)
			draws += sampler->step[s].draws_noise;
		CU_ASSERT_EQUAL(draws, cases[i].draws);
		CU_ASSERT_EQUAL(sampler->history, cases[i].history);
		free(sampler);
	}
}

static void what_cannot_be_done_is_refused(void)
{
	static const struct {
		const char *what;
		enum smalti_scheduler scheduler;
		enum variant variant;
		int64_t steps;
		enum smalti_code code;
		const char *words[3];
	} cases[] = {
	    {"no steps", DPM, PLAIN, 0, SMALTI_EINVAL, {"0 steps", "1 to", "1000"}},
	    {"negative", LCM, PLAIN, -3, SMALTI_EINVAL, {"-3 steps"}},
	    {"too many", EULER, PLAIN, 1001, SMALTI_EINVAL, {"1001 steps", "1000"}},
	    {"lcm 51", LCM, PLAIN, 51, SMALTI_EINVAL, {"original_inference_steps", "51"}},
	    {"leading", SA, LEADING, 1000, SMALTI_EINVAL, {"leading", "999"}},
	    {"offset", DDIM, OFFSET_60, 20, SMALTI_EINVAL, {"steps_offset 60", "0 to 49"}},
	    {"ddpm 2", DDPM, LEARNED, 2, SMALTI_EUNSUPPORTED, {"DDPMScheduler", "variance_type", "1 step"}},
	    {"clipped", DPM, ABOVE_ALL, 5, SMALTI_EINVAL, {"lambda_min_clipped", "10"}},
	    {"bh1", UNIPC, BH1_TO_0, 5, SMALTI_EUNSUPPORTED, {"bh1", "sigma_min", "zero"}},
	    {"unipc", UNIPC, NOISE_PREDICTING_TO_0, 5, SMALTI_EUNSUPPORTED, {"predict_x0", "sigma_min"}},
	    {"dpmsolver", DPM, NOISE_PREDICTING_TO_0, 5, SMALTI_EUNSUPPORTED, {"dpmsolver", "sigma_min"}},
	    {"beta tiny", DDIM, BETA_TINY, 5, SMALTI_EINVAL, {"beta_start"}},
	    {"beta huge", DDIM, BETA_HUGE, 5, SMALTI_EINVAL, {"beta_end 0.9"}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_scheduler_config config = configuration(cases[i].scheduler, cases[i].variant);
		struct smalti_sampler *sampler = smalti_sampler_new(&config, cases[i].steps, &error);
		FAILS(sampler ? 0 : -1, &error, cases[i].code, cases[i].what, cases[i].words[0],
		      cases[i].words[1], cases[i].words[2]);
		free(sampler);
	}
}

/* Image to image: the last steps of a schedule, which begin with an image and noise. */
static void a_strength_takes_the_last_steps(void)
{
	static const struct {
		const char *what;
		enum smalti_scheduler scheduler;
		int64_t steps, rows;
		double strength, timestep, clean, noise;
	} cases[] = {
	    {"all", DPM, 20, 20, 1, 999, 0.006352818571, 0.9999798537},
	    {"as from noise", DPM, 20, 20, 0, 999, 0.006352818571, 0.9999798537},
	    {"28 of 50", DPM, 50, 28, 0.58, 559, 0.203331945, 0.979109861}, /* 50 · 0.58 is below 29 */
	    {"half", UNIPC, 20, 10, 0.5, 500, 0.278920501471, 0.9603142142},
	    {"in sigmas", EULER, 20, 2, 0.1, 52.578948974609375, 1, 0.184375882},
	    {"calls", HEUN_CLASS, 10, 9, 0.5, 444, 1, 2.554691205},
	    {"by timesteps", DDIM, 20, 6, 0.3, 263, 0.697947150, 0.716149269},
	    {"of LCM", LCM, 4, 4, 0.5, 499, 0.280334, 0.959902},
	    {"of flow", FLOW_EULER, 4, 2, 0.5, 334, 0.666, 0.334},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_scheduler_config config = configuration(cases[i].scheduler, PLAIN);
		config.strength = cases[i].strength;
		struct smalti_sampler *sampler = smalti_sampler_new(&config, cases[i].steps, &error);
		SUCCEEDS(sampler ? 0 : -1, &error, cases[i].what);
		if (!sampler)
			continue;
		const struct smalti_sampler_step *step = sampler->step, *last = step + sampler->steps - 1;
		CHECK(sampler->steps == cases[i].rows, cases[i].what);
		CHECK(fabs(step->timestep - cases[i].timestep) < 1e-3, cases[i].what);
		CHECK(fabs(sampler->start.clean - cases[i].clean) < 1e-5, cases[i].what);
		CHECK(fabs(sampler->start.noise - cases[i].noise) < 1e-5, cases[i].what);
		CHECK(last->level.clean == 1 && last->level.noise == 0, cases[i].what);
		for (int k = 0; k < SMALTI_SAMPLER_PREDICTIONS; k++)
			CHECK(step->next.last_m[k] == 0 && !step->corrects, "nothing came before");
		free(sampler);
	}
}

/* A corrector would begin from latents in which nothing was put back. */
static void what_is_repainted_is_not_corrected(void)
{
	static const enum smalti_scheduler schedulers[] = {UNIPC, SA};
	for (int i = 0; i < 2; i++)
		for (int repaints = 0; repaints < 2; repaints++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_scheduler_config config = configuration(schedulers[i], PLAIN);
			config.repaints = repaints;
			struct smalti_sampler *sampler = smalti_sampler_new(&config, 5, &error);
			CHECK(sampler && sampler->step[3].corrects == !repaints, "corrects");
			free(sampler);
		}
}

/* scaled_linear: sqrt(beta) is linear; Stable Diffusion's first and last alpha_bar are known. */
static void betas_may_be_scaled(void)
{
	struct smalti_scheduler_config config = defaults;
	config.beta_schedule = SMALTI_BETAS_SCALED_LINEAR;
	config.beta_start = 0.00085;
	config.beta_end = 0.012;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_sampler *sampler = smalti_sampler_new(&config, 20, &error);
	SUCCEEDS(sampler ? 0 : -1, &error, "scaled_linear");
	/* k-diffusion's sigma_max of that model */
	CU_ASSERT_DOUBLE_EQUAL(-sampler->step[0].prediction.output, 14.6146, 1e-4);
	free(sampler);
}

static void names_are_found(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int count = 0;
	while (smalti_sampler_name_at(count)) {
		const struct smalti_sampler_name *name = smalti_sampler_name_at(count++);
		CU_ASSERT_PTR_EQUAL(smalti_sampler_name_find(name->name, &error), name);
	}
	CU_ASSERT_EQUAL(count, 21);
	CU_ASSERT_PTR_NULL(smalti_sampler_name_at(-1));
	const struct smalti_sampler_name *karras = smalti_sampler_name_find("dpm++ karras", &error);
	CU_ASSERT_EQUAL(karras->scheduler, DPM);
	CU_ASSERT_EQUAL(karras->sigmas, SMALTI_SIGMAS_KARRAS);
	FAILS(smalti_sampler_name_find("pndm", &error) ? 0 : -1, &error, SMALTI_EINVAL, "pndm", "\"pndm\"",
	      "\"dpm++ karras\"", "\"dmd\"");
}

/* From a name and a model's file, as a request has them; keys that both classes know carry over. */
static void a_name_works_on_any_model(void)
{
	static const struct {
		const char *name;
		int64_t steps;
		double sigma, first[3];
	} cases[] = {
	    {"dpm++", 20, 1, {999, 949, 899}},
	    {"dpm++ karras", 12, 1, {999, 949, 892}},
	    {"euler", 30, 157.40727, {999, 964.55172, 930.10345}},
	    {"ddim", 25, 1, {999, 957, 916}},
	    {"lcm", 4, 1, {999, 759, 499}},
	    {"sa-solver", 25, 1, {999, 959, 919}},
	    {"dmd", 1, 1, {400}},
	    {"ddpm", 20, 1, {999, 946, 894}},
	    {"dpm++ 3m karras", 20, 1, {999, 971, 940}},
	    {"dpm++ sde", 20, 1, {999, 949, 899}},
	    {"dpm", 20, 1, {999, 949, 899}},
	    {"unipc karras", 12, 1, {999, 949, 892}},
	    {"euler a", 7, 157.40727, {999, 832.5, 666}},
	    {"heun", 20, 157.40727, {999, 946.42108, 946.42108}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct smalti_sampler_name *name = smalti_sampler_name_find(cases[i].name, &error);
		struct smalti_scheduler_config config;
		const char *path = test_model("tesserae/scheduler/scheduler_config.json");
		int status = smalti_scheduler_config_read_as(path, name->scheduler, &config, &error);
		SUCCEEDS(status, &error, cases[i].name);
		smalti_sampler_name_set(name, &config);
		CHECK(!name->steps == (strcmp(smalti_sampler_name_of(&config), name->name) == 0), name->name);
		struct smalti_sampler *sampler = smalti_sampler_new(&config, cases[i].steps, &error);
		SUCCEEDS(sampler ? 0 : -1, &error, cases[i].name);
		for (int k = 0; sampler && k < 3 && k < cases[i].steps; k++)
			CHECK(fabs(sampler->step[k].timestep - cases[i].first[k]) < 1e-4, cases[i].name);
		CHECK(sampler && fabs(sampler->initial_sigma - cases[i].sigma) < 1e-4, cases[i].name);
		CHECK(sampler && sampler->step[0].clip == 0, cases[i].name);
		free(sampler);
	}
}

static const struct test tests[] = {
    {"timesteps are those of the reference", timesteps_are_those_of_the_reference},
    {"coefficients are those of the reference", coefficients_are_those_of_the_reference},
    {"trajectories are those of the reference", trajectories_are_those_of_the_reference},
    {"parts give the bits of the whole", parts_give_the_bits_of_the_whole},
    {"a perfect model is followed", a_perfect_model_is_followed},
    {"predictions are clamped when asked", predictions_are_clamped_when_asked},
    {"noise is drawn where the reference draws", noise_is_drawn_where_the_reference_draws},
    {"what cannot be done is refused", what_cannot_be_done_is_refused},
    {"a strength takes the last steps", a_strength_takes_the_last_steps},
    {"what is repainted is not corrected", what_is_repainted_is_not_corrected},
    {"betas may be scaled", betas_may_be_scaled},
    {"names are found", names_are_found},
    {"a name works on any model", a_name_works_on_any_model},
};

TEST_MAIN("samplers", tests)
