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
#define UNIPC(more) "{\"_class_name\": \"UniPCMultistepScheduler\", " more "}"
#define FLOW(more)  "{\"_class_name\": \"FlowMatchEulerDiscreteScheduler\", " more "}"
#define SA(more)    "{\"_class_name\": \"SASolverScheduler\", " more "}"

static void schedulers_are_checked(void)
{
	static const struct bad_config cases[] = {
	    {"{}", SMALTI_EFORMAT, {"_class_name", "missing"}},
	    {"{\"_class_name\": \"PNDMScheduler\"}",
	     SMALTI_EUNSUPPORTED,
	     {"PNDMScheduler", "FlowMatchHeunDiscreteScheduler"}},
	    {DPM("\"algorithm_type\": \"sde-dpmsolver\""), SMALTI_EUNSUPPORTED, {"algorithm_type", "sde"}},
	    {DPM("\"solver_order\": 4"), SMALTI_EFORMAT, {"solver_order", "from 1 to 3"}},
	    {UNIPC("\"solver_type\": \"midpoint\""), SMALTI_EUNSUPPORTED, {"midpoint", "bh2"}},
	    {UNIPC("\"solver_p\": {}"), SMALTI_EUNSUPPORTED, {"solver_p", "null"}},
	    {UNIPC("\"disable_corrector\": [0, -1]"), SMALTI_EFORMAT, {"disable_corrector"}},
	    {UNIPC("\"use_karras_sigmas\": true, \"use_beta_sigmas\": true"),
	     SMALTI_EFORMAT,
	     {"use_karras_sigmas", "use_beta_sigmas"}},
	    {FLOW("\"use_dynamic_shifting\": true"), SMALTI_EUNSUPPORTED, {"use_dynamic_shifting"}},
	    {FLOW("\"use_karras_sigmas\": true"), SMALTI_EUNSUPPORTED, {"use_karras_sigmas"}},
	    {FLOW("\"shift\": 0"), SMALTI_EFORMAT, {"shift", "found 0"}},
	    {"{\"_class_name\": \"DDIMScheduler\", \"rescale_betas_zero_snr\": true}",
	     SMALTI_EUNSUPPORTED,
	     {"rescale_betas_zero_snr", "v_prediction"}},
	    {SA("\"rescale_betas_zero_snr\": true"), SMALTI_EUNSUPPORTED, {"rescale_betas_zero_snr"}},
	    {DPM("\"solver_type\": \"bh1\""), SMALTI_EUNSUPPORTED, {"bh1", "heun"}},
	    {DPM("\"prediction_type\": \"flow_prediction\""),
	     SMALTI_EUNSUPPORTED,
	     {"prediction_type", "use_flow_sigmas"}},
	    {DPM("\"beta_schedule\": \"laplace\""), SMALTI_EUNSUPPORTED, {"beta_schedule", "linear"}},
	    {DPM("\"trained_betas\": [0.1]"), SMALTI_EUNSUPPORTED, {"trained_betas", "null"}},
	    {DPM("\"variance_type\": \"learned_range\""), SMALTI_EUNSUPPORTED, {"variance_type", "null"}},
	    {DPM("\"thresholding\": true"), SMALTI_EUNSUPPORTED, {"thresholding", "false"}},
	    {DPM("\"use_flow_sigmas\": true"), SMALTI_EUNSUPPORTED, {"use_flow_sigmas", "epsilon"}},
	    {SA("\"use_flow_sigmas\": true"), SMALTI_EUNSUPPORTED, {"use_flow_sigmas"}},
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
		" \"solver_type\": \"heun\", \"solver_order\": 3, \"use_karras_sigmas\": true, "
		"\"final_sigmas_type\": \"sigma_min\""));
	struct smalti_scheduler_config config;
	for (int s = SMALTI_SCHEDULER_UNIPC; s < SMALTI_SCHEDULER_FLOW_EULER; s++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_scheduler_config_parse_as(file, (enum smalti_scheduler)s, &config, &error),
			 &error, "take over");
		bool sigmas = s == SMALTI_SCHEDULER_UNIPC || s == SMALTI_SCHEDULER_EULER ||
			      s == SMALTI_SCHEDULER_HEUN || s == SMALTI_SCHEDULER_SA_SOLVER;
		CU_ASSERT_EQUAL((int)config.scheduler, s);
		CU_ASSERT_EQUAL(config.beta_schedule, SMALTI_BETAS_LINEAR);
		CU_ASSERT_TRUE(config.beta_start == 0.0001 && config.beta_end == 0.02);
		CU_ASSERT_EQUAL(config.spacing, SMALTI_SPACING_TRAILING);
		CU_ASSERT_EQUAL(config.sigmas == SMALTI_SIGMAS_KARRAS, sigmas);
		CU_ASSERT_FALSE(config.clip_sample);
	}
	struct smalti_error flow = SMALTI_NO_ERROR;
	FAILS(smalti_scheduler_config_parse_as(file, SMALTI_SCHEDULER_FLOW_EULER, &config, &flow), &flow,
	      SMALTI_EUNSUPPORTED, "not a model of flow", "epsilon", "FlowMatchEuler");
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
	    {"EulerDiscreteScheduler", DPM("\"beta_end\": 0.5, \"solver_order\": 9"), SMALTI_SCHEDULER_EULER,
	     NULL},
	    {"EulerDiscreteScheduler", "{\"_class_name\": \"PNDMScheduler\", \"beta_end\": 0.5}", -1,
	     "PNDMScheduler"},
	    {"EulerDiscreteScheduler", "{\"beta_end\": 0.5}", SMALTI_SCHEDULER_EULER, NULL},
	    {"PNDMScheduler", EULER("\"beta_end\": 0.5"), -1, "PNDMScheduler"},
	    {"PNDMScheduler", EULER("\"beta_end\": 0.5"), -1, "HeunDiscreteScheduler"},
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

/* Keys as published files have them. */
static void files_of_every_class_are_read(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_scheduler_config config;
	cJSON *unipc = config_object(
	    UNIPC("\"solver_type\": \"bh1\", \"solver_order\": 3, \"predict_x0\": false,"
		  " \"disable_corrector\": [0, 2], \"solver_p\": null, \"use_exponential_sigmas\": true,"
		  " \"rescale_betas_zero_snr\": true, \"prediction_type\": \"v_prediction\","
		  " \"final_sigmas_type\": \"sigma_min\""));
	SUCCEEDS(smalti_scheduler_config_parse(unipc, NULL, &config, &error), &error, "UniPC");
	CU_ASSERT_TRUE(config.bh == SMALTI_BH1 && config.solver_order == 3 && !config.predict_x0);
	CU_ASSERT_TRUE(config.disabled_correctors == 2 && config.disabled_corrector[1] == 2);
	CU_ASSERT_TRUE(config.sigmas == SMALTI_SIGMAS_EXPONENTIAL && config.zero_snr);
	SUCCEEDS(smalti_scheduler_config_parse_as(unipc, SMALTI_SCHEDULER_DPM_SOLVER, &config, &error),
		 &error, "UniPC's file for DPM-Solver");
	CU_ASSERT_TRUE(config.solver_type == SMALTI_SOLVER_MIDPOINT && config.disabled_correctors == 0);
	cJSON_Delete(unipc);
	cJSON *dpm =
	    config_object(DPM("\"algorithm_type\": \"sde-dpmsolver++\", \"use_lu_lambdas\": true,"
			      " \"lambda_min_clipped\": -5.1, \"beta_schedule\": \"squaredcos_cap_v2\""));
	SUCCEEDS(smalti_scheduler_config_parse(dpm, NULL, &config, &error), &error, "DPM-Solver");
	CU_ASSERT_TRUE(config.algorithm == SMALTI_SDE_DPM_SOLVER_PP && config.sigmas == SMALTI_SIGMAS_LU);
	CU_ASSERT_TRUE(config.lambda_min_clipped == -5.1 &&
		       config.beta_schedule == SMALTI_BETAS_SQUARED_COSINE);
	cJSON_Delete(dpm);
	cJSON *flow = config_object(FLOW("\"shift\": 3.0, \"use_dynamic_shifting\": false"));
	SUCCEEDS(smalti_scheduler_config_parse(flow, NULL, &config, &error), &error, "flow");
	CU_ASSERT_TRUE(config.flow_shift == 3 && config.sigmas == SMALTI_SIGMAS_FLOW);
	FAILS(smalti_scheduler_config_parse_as(flow, SMALTI_SCHEDULER_EULER, &config, &error), &error,
	      SMALTI_EUNSUPPORTED, "a model of flow", "flow_prediction", "EulerDiscreteScheduler");
	cJSON_Delete(flow);
}

static const struct test tests[] = {
    {"schedulers are checked", schedulers_are_checked},
    {"another scheduler takes over what it knows", another_scheduler_takes_over_what_it_knows},
    {"the index decides the class", the_index_decides_the_class},
    {"schedulers have their own defaults", schedulers_have_their_own_defaults},
    {"files of every class are read", files_of_every_class_are_read},
};

TEST_MAIN("configurations of schedulers", tests)
