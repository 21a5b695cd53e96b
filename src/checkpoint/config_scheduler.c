/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "checkpoint/config.h"

#include <math.h>

static const char *const classes[SMALTI_SCHEDULERS + 1] = {
    [SMALTI_SCHEDULER_DPM_SOLVER] = "DPMSolverMultistepScheduler",
    [SMALTI_SCHEDULER_EULER] = "EulerDiscreteScheduler",
    [SMALTI_SCHEDULER_DDIM] = "DDIMScheduler",
    [SMALTI_SCHEDULER_LCM] = "LCMScheduler",
    [SMALTI_SCHEDULER_SA_SOLVER] = "SASolverScheduler",
    [SMALTI_SCHEDULER_DDPM] = "DDPMScheduler",
};

static const char *const beta_schedules[] = {"linear", "scaled_linear", NULL};
static const char *const spacings[] = {"linspace", "leading", "trailing", NULL};
static const char *const predictions[] = {"epsilon", "v_prediction", "sample", NULL};
static const char *const final_sigmas[] = {"zero", "sigma_min", NULL};
static const char *const solver_types[] = {"midpoint", "heun", NULL};
static const char *const dpm_algorithms[] = {"dpmsolver++", NULL};
static const char *const sa_algorithms[] = {"data_prediction", NULL};
static const char *const interpolations[] = {"linear", NULL};
static const char *const timestep_types[] = {"discrete", NULL};

#define CONFIG struct smalti_scheduler_config

enum {
	DPM = 1 << SMALTI_SCHEDULER_DPM_SOLVER,
	EULER = 1 << SMALTI_SCHEDULER_EULER,
	DDIM = 1 << SMALTI_SCHEDULER_DDIM,
	LCM = 1 << SMALTI_SCHEDULER_LCM,
	SA = 1 << SMALTI_SCHEDULER_SA_SOLVER,
	DDPM = 1 << SMALTI_SCHEDULER_DDPM,
	ALL = (1 << SMALTI_SCHEDULERS) - 1,
	OWN = 1 << SMALTI_SCHEDULERS, /* read only from a file of the same class */
};

/* Each class has its own values of algorithm_type, so that of another class is ignored. */
static const struct {
	int schedulers; /* that read it */
	struct smalti_field field;
} fields[] = {
    {ALL, {FIELD_INT("num_train_timesteps", OPTIONAL, train_timesteps, 2, 100000)}},
    {ALL, {FIELD_DOUBLE("beta_start", OPTIONAL, beta_start, 1e-9, 0.999)}},
    {ALL, {FIELD_DOUBLE("beta_end", OPTIONAL, beta_end, 1e-9, 0.999)}},
    {ALL, {FIELD_CHOICE("beta_schedule", OPTIONAL, beta_schedule, beta_schedules)}},
    {ALL, {FIELD_CHOICE("prediction_type", OPTIONAL, prediction, predictions)}},
    {ALL, {FIELD_CHOICE("timestep_spacing", OPTIONAL, spacing, spacings)}},
    {ALL, {FIELD_INT("steps_offset", OPTIONAL, steps_offset, 0, 1000)}},
    {ALL, {FIELD_NULL("trained_betas")}},
    {ALL, {FIELD_FALSE("rescale_betas_zero_snr")}},
    {DPM | OWN, {FIELD_CHOICE("algorithm_type", OPTIONAL, algorithm, dpm_algorithms)}},
    {SA | OWN, {FIELD_ONLY("algorithm_type", OPTIONAL, sa_algorithms)}},
    {DPM, {FIELD_CHOICE("solver_type", OPTIONAL, solver_type, solver_types)}},
    {DPM, {FIELD_INT("solver_order", OPTIONAL, solver_order, 1, 2)}},
    {DPM | SA, {FIELD_BOOL("lower_order_final", OPTIONAL, lower_order_final)}},
    {DPM, {FIELD_BOOL("euler_at_final", OPTIONAL, euler_at_final)}},
    {DPM | EULER | SA, {FIELD_BOOL("use_karras_sigmas", OPTIONAL, karras_sigmas)}},
    {DPM | EULER, {FIELD_CHOICE("final_sigmas_type", OPTIONAL, final_sigma, final_sigmas)}},
    {DPM | EULER | SA, {FIELD_FALSE("use_exponential_sigmas")}},
    {DPM | EULER | SA, {FIELD_FALSE("use_beta_sigmas")}},
    {DPM, {FIELD_FALSE("use_lu_lambdas")}},
    {DPM | SA, {FIELD_FALSE("use_flow_sigmas")}},
    {DPM | SA, {FIELD_NULL("variance_type")}},
    {EULER, {FIELD_ONLY("interpolation_type", OPTIONAL, interpolations)}},
    {EULER, {FIELD_ONLY("timestep_type", OPTIONAL, timestep_types)}},
    {EULER, {FIELD_NULL("sigma_min")}},
    {EULER, {FIELD_NULL("sigma_max")}},
    {DDIM | LCM | DDPM, {FIELD_BOOL("clip_sample", OPTIONAL, clip_sample)}},
    {DDIM | LCM | DDPM, {FIELD_DOUBLE("clip_sample_range", OPTIONAL, clip_sample_range, 1e-6, 1e6)}},
    {DDIM | LCM, {FIELD_BOOL("set_alpha_to_one", OPTIONAL, set_alpha_to_one)}},
    {LCM, {FIELD_INT("original_inference_steps", OPTIONAL, original_inference_steps, 1, 100000)}},
    {LCM, {FIELD_DOUBLE("timestep_scaling", OPTIONAL, timestep_scaling, 1e-6, 1e6)}},
    {SA, {FIELD_INT("predictor_order", OPTIONAL, predictor_order, 1, 2)}},
    {SA, {FIELD_INT("corrector_order", OPTIONAL, corrector_order, 1, 2)}},
    {ALL & ~EULER, {FIELD_FALSE("thresholding")}},
};

static struct smalti_scheduler_config defaults_of(enum smalti_scheduler scheduler)
{
	struct smalti_scheduler_config config = {
	    .scheduler = scheduler,
	    .train_timesteps = 1000,
	    .beta_start = 0.0001,
	    .beta_end = 0.02,
	    .beta_schedule = SMALTI_BETAS_LINEAR,
	    .spacing = SMALTI_SPACING_LINSPACE,
	    .solver_order = 2,
	    .lower_order_final = true,
	    .predictor_order = 2,
	    .corrector_order = 2,
	    .clip_sample_range = 1,
	    .set_alpha_to_one = true,
	    .original_inference_steps = 50,
	    .timestep_scaling = 10,
	};
	if (1 << scheduler & (DDIM | LCM | DDPM))
		config.spacing = SMALTI_SPACING_LEADING;
	if (scheduler == SMALTI_SCHEDULER_LCM) {
		config.beta_start = 0.00085;
		config.beta_end = 0.012;
		config.beta_schedule = SMALTI_BETAS_SCALED_LINEAR;
	}
	return config;
}

static int check_together(const cJSON *file, const struct smalti_scheduler_config *config,
			  struct smalti_error *error)
{
	double clipped = -INFINITY;
	if (config->beta_end < config->beta_start)
		return smalti_fail(error, SMALTI_EFORMAT, "\"beta_end\" %g is below \"beta_start\" %g",
				   config->beta_end, config->beta_start);
	if (config->scheduler == SMALTI_SCHEDULER_LCM &&
	    config->original_inference_steps > config->train_timesteps)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"original_inference_steps\" %lld is above \"num_train_timesteps\" %lld",
				   (long long)config->original_inference_steps,
				   (long long)config->train_timesteps);
	if (smalti_json_double(file, "lambda_min_clipped", SMALTI_JSON_NULLABLE, -INFINITY, INFINITY,
			       &clipped, error))
		return -1;
	if (config->scheduler == SMALTI_SCHEDULER_DPM_SOLVER && clipped > -INFINITY)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"lambda_min_clipped\" is %g, only -Infinity can be used", clipped);
	return 0;
}

/* Reads the file; `own`: it was written for this class. */
static int parse_as(const cJSON *file, enum smalti_scheduler scheduler, bool own,
		    struct smalti_scheduler_config *config, struct smalti_error *error)
{
	*config = defaults_of(scheduler);
	config->clip_sample = own && scheduler == SMALTI_SCHEDULER_DDPM;
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		if (fields[i].schedulers >> scheduler & 1 && (own || !(fields[i].schedulers & OWN)) &&
		    smalti_fields_read(file, &fields[i].field, 1, config, error))
			return -1;
	return check_together(file, config, error);
}

int smalti_scheduler_config_parse(const cJSON *file, const char *class,
				  struct smalti_scheduler_config *config, struct smalti_error *error)
{
	int own = 0, scheduler = 0;
	if (smalti_json_choice(file, "_class_name", class ? SMALTI_JSON_OPTIONAL : SMALTI_JSON_REQUIRED,
			       classes, &own, error))
		return -1;
	while (class && classes[scheduler] && strcmp(class, classes[scheduler]) != 0)
		scheduler++;
	if (!classes[scheduler])
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "the class of \"scheduler\" in model_index.json is %.100s, which cannot be run", class);
	scheduler = class ? scheduler : own;
	return smalti_scheduler_config_parse_as(file, (enum smalti_scheduler)scheduler, config, error);
}

int smalti_scheduler_config_parse_as(const cJSON *file, enum smalti_scheduler scheduler,
				     struct smalti_scheduler_config *config, struct smalti_error *error)
{
	const char *name = "";
	if (smalti_json_string(file, "_class_name", SMALTI_JSON_OPTIONAL, &name, error))
		return -1;
	return parse_as(file, scheduler, !strcmp(name, classes[scheduler]), config, error);
}

int smalti_scheduler_config_read(const char *path, const char *class, struct smalti_scheduler_config *config,
				 struct smalti_error *unusable, struct smalti_error *error)
{
	cJSON *file = smalti_config_open(path, error);
	if (file)
		smalti_config_close(file, path, smalti_scheduler_config_parse(file, class, config, unusable),
				    unusable);
	return file ? 0 : -1;
}

int smalti_scheduler_config_read_as(const char *path, enum smalti_scheduler scheduler,
				    struct smalti_scheduler_config *config, struct smalti_error *error)
{
	cJSON *file = smalti_config_open(path, error);
	int status = file ? smalti_scheduler_config_parse_as(file, scheduler, config, error) : -1;
	return smalti_config_close(file, path, status, error);
}
