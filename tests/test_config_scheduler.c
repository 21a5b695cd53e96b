/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/config.h"
#include "config_case.h"

static int parse_scheduler(const cJSON *file, struct smalti_error *error)
{
	struct smalti_scheduler_config config;
	return smalti_scheduler_config_parse(file, NULL, &config, error);
}

#define DPM(more)   "{\"_class_name\": \"DPMSolverMultistepScheduler\", " more "}"
#define EULER(more) "{\"_class_name\": \"EulerDiscreteScheduler\", " more "}"
#define SA(more)    "{\"_class_name\": \"SASolverScheduler\", " more "}"

static void schedulers_are_checked(void)
{
	static const struct bad_config cases[] = {
	    {"{}", SMALTI_EFORMAT, {"_class_name", "missing"}},
	    {"{\"_class_name\": \"HeunDiscreteScheduler\"}",
	     SMALTI_EUNSUPPORTED,
	     {"HeunDiscrete", "SASolverScheduler"}},
	    {DPM("\"algorithm_type\": \"sde-dpmsolver++\""), SMALTI_EUNSUPPORTED, {"algorithm_type", "sde"}},
	    {DPM("\"solver_order\": 3"), SMALTI_EFORMAT, {"solver_order", "from 1 to 2"}},
	    {DPM("\"solver_type\": \"bh1\""), SMALTI_EUNSUPPORTED, {"bh1", "heun"}},
	    {DPM("\"prediction_type\": \"flow_prediction\""),
	     SMALTI_EUNSUPPORTED,
	     {"prediction_type", "epsilon"}},
	    {DPM("\"beta_schedule\": \"squaredcos_cap_v2\""),
	     SMALTI_EUNSUPPORTED,
	     {"beta_schedule", "linear"}},
	    {DPM("\"trained_betas\": [0.1]"), SMALTI_EUNSUPPORTED, {"trained_betas", "null"}},
	    {DPM("\"variance_type\": \"learned_range\""), SMALTI_EUNSUPPORTED, {"variance_type", "null"}},
	    {DPM("\"thresholding\": true"), SMALTI_EUNSUPPORTED, {"thresholding", "false"}},
	    {DPM("\"use_lu_lambdas\": true"), SMALTI_EUNSUPPORTED, {"use_lu_lambdas"}},
	    {DPM("\"use_flow_sigmas\": true"), SMALTI_EUNSUPPORTED, {"use_flow_sigmas"}},
	    {DPM("\"rescale_betas_zero_snr\": true"), SMALTI_EUNSUPPORTED, {"rescale_betas_zero_snr"}},
	    {DPM("\"lambda_min_clipped\": -5.1"), SMALTI_EUNSUPPORTED, {"lambda_min_clipped", "-5.1"}},
	    {DPM("\"lambda_min_clipped\": true"), SMALTI_EFORMAT, {"lambda_min_clipped", "true"}},
	    {DPM("\"num_train_timesteps\": 1"), SMALTI_EFORMAT, {"num_train_timesteps", "found 1"}},
	    {DPM("\"beta_start\": 0"), SMALTI_EFORMAT, {"beta_start", "found 0"}},
	    {DPM("\"beta_end\": 1"), SMALTI_EFORMAT, {"beta_end", "found 1"}},
	    {DPM("\"beta_start\": 0.5"), SMALTI_EFORMAT, {"beta_end", "below"}},
	    {EULER("\"timestep_type\": \"continuous\""), SMALTI_EUNSUPPORTED, {"timestep_type", "discrete"}},
	    {EULER("\"interpolation_type\": \"log_linear\""), SMALTI_EUNSUPPORTED, {"interpolation_type"}},
	    {EULER("\"sigma_max\": 10"), SMALTI_EUNSUPPORTED, {"sigma_max", "10"}},
	    {SA("\"algorithm_type\": \"noise_prediction\""), SMALTI_EUNSUPPORTED, {"data_prediction"}},
	    {SA("\"corrector_order\": 0"), SMALTI_EFORMAT, {"corrector_order", "found 0"}},
	    {"{\"_class_name\": \"DDIMScheduler\", \"clip_sample_range\": -1}",
	     SMALTI_EFORMAT,
	     {"clip_sample_range"}},
	    {"{\"_class_name\": \"LCMScheduler\", \"original_inference_steps\": 1001}",
	     SMALTI_EFORMAT,
	     {"original_inference_steps", "1000"}},
	};
	check_bad_configs(parse_scheduler, cases, COUNT(cases));
}

/* from_config (4.4): keys of the same name carry over, the rest are the new scheduler's defaults. */
static void another_scheduler_takes_over_what_it_knows(void)
{
	cJSON *file = config_object(
	    DPM("\"algorithm_type\": \"dpmsolver++\", \"beta_schedule\": \"linear\","
		" \"beta_start\": 0.0001, \"beta_end\": 0.02, \"timestep_spacing\": \"trailing\","
		" \"solver_order\": 3, \"use_karras_sigmas\": true, \"final_sigmas_type\": \"sigma_min\""));
	struct smalti_scheduler_config config;
	for (int s = SMALTI_SCHEDULER_EULER; s < SMALTI_SCHEDULERS; s++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_scheduler_config_parse_as(file, (enum smalti_scheduler)s, &config, &error),
			 &error, "take over");
		bool sigmas = s == SMALTI_SCHEDULER_EULER || s == SMALTI_SCHEDULER_SA_SOLVER;
		CU_ASSERT_EQUAL((int)config.scheduler, s);
		CU_ASSERT_EQUAL(config.beta_schedule, SMALTI_BETAS_LINEAR);
		CU_ASSERT_TRUE(config.beta_start == 0.0001 && config.beta_end == 0.02);
		CU_ASSERT_EQUAL(config.spacing, SMALTI_SPACING_TRAILING);
		CU_ASSERT_EQUAL(config.karras_sigmas, sigmas);
		CU_ASSERT_FALSE(config.clip_sample);
	}
	struct smalti_error own = SMALTI_NO_ERROR;
	FAILS(smalti_scheduler_config_parse_as(file, SMALTI_SCHEDULER_DPM_SOLVER, &config, &own), &own,
	      SMALTI_EFORMAT, "its own file", "solver_order");
	cJSON_Delete(file);
}

/* As diffusers loads a pipeline: by the class that its index names, with the values of the scheduler's file.
 */
static void the_index_decides_the_class(void)
{
	static const struct {
		const char *class, *text;
		int scheduler;    /* -1: it cannot be run, */
		const char *word; /* because of this */
	} cases[] = {
	    {NULL, EULER("\"beta_end\": 0.5"), SMALTI_SCHEDULER_EULER, NULL},
	    {"EulerDiscreteScheduler", DPM("\"beta_end\": 0.5, \"solver_order\": 3"), SMALTI_SCHEDULER_EULER,
	     NULL},
	    {"EulerDiscreteScheduler", "{\"_class_name\": \"UniPCMultistepScheduler\", \"beta_end\": 0.5}",
	     -1, "UniPCMultistepScheduler"},
	    {"EulerDiscreteScheduler", "{\"beta_end\": 0.5}", SMALTI_SCHEDULER_EULER, NULL},
	    {"UniPCMultistepScheduler", EULER("\"beta_end\": 0.5"), -1, "UniPCMultistepScheduler"},
	    {"", EULER("\"beta_end\": 0.5"), -1, "model_index.json"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		cJSON *file = config_object(cases[i].text);
		struct smalti_scheduler_config config = {0};
		struct smalti_error error = SMALTI_NO_ERROR;
		const int status = smalti_scheduler_config_parse(file, cases[i].class, &config, &error);
		if (cases[i].scheduler < 0)
			FAILS(status, &error, SMALTI_EUNSUPPORTED, cases[i].text, cases[i].word);
		else
			CHECK(status == 0 && (int)config.scheduler == cases[i].scheduler &&
				  config.beta_end == 0.5,
			      cases[i].text);
		cJSON_Delete(file);
	}
}

static void schedulers_have_their_own_defaults(void)
{
	static const struct {
		const char *text;
		enum smalti_scheduler scheduler;
		enum smalti_spacing spacing;
		double beta_end;
		bool clip;
	} cases[] = {
	    {DPM("\"steps_offset\": 0"), SMALTI_SCHEDULER_DPM_SOLVER, SMALTI_SPACING_LINSPACE, 0.02, false},
	    {EULER("\"steps_offset\": 0"), SMALTI_SCHEDULER_EULER, SMALTI_SPACING_LINSPACE, 0.02, false},
	    {SA("\"steps_offset\": 0"), SMALTI_SCHEDULER_SA_SOLVER, SMALTI_SPACING_LINSPACE, 0.02, false},
	    {"{\"_class_name\": \"DDIMScheduler\"}", SMALTI_SCHEDULER_DDIM, SMALTI_SPACING_LEADING, 0.02,
	     false},
	    {"{\"_class_name\": \"DDIMScheduler\", \"clip_sample\": true}", SMALTI_SCHEDULER_DDIM,
	     SMALTI_SPACING_LEADING, 0.02, true},
	    {"{\"_class_name\": \"DDPMScheduler\"}", SMALTI_SCHEDULER_DDPM, SMALTI_SPACING_LEADING, 0.02,
	     true},
	    {"{\"_class_name\": \"LCMScheduler\"}", SMALTI_SCHEDULER_LCM, SMALTI_SPACING_LEADING, 0.012,
	     false},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		cJSON *file = config_object(cases[i].text);
		struct smalti_scheduler_config config;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_scheduler_config_parse(file, NULL, &config, &error), &error, cases[i].text);
		CHECK(config.scheduler == cases[i].scheduler, cases[i].text);
		CHECK(config.spacing == cases[i].spacing, cases[i].text);
		CHECK(config.beta_end == cases[i].beta_end, cases[i].text);
		CHECK(config.clip_sample == cases[i].clip, cases[i].text);
		CHECK(config.original_inference_steps == 50 && config.timestep_scaling == 10, cases[i].text);
		cJSON_Delete(file);
	}
}

static const struct test tests[] = {
    {"schedulers are checked", schedulers_are_checked},
    {"another scheduler takes over what it knows", another_scheduler_takes_over_what_it_knows},
    {"the index decides the class", the_index_decides_the_class},
    {"schedulers have their own defaults", schedulers_have_their_own_defaults},
};

TEST_MAIN("configurations of schedulers", tests)
