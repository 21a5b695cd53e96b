/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "checkpoint/config.h"

#include <math.h>

static const char *const classes[SMALTI_SCHEDULERS + 1] = {
    [SMALTI_SCHEDULER_DPM_SOLVER] = "DPMSolverMultistepScheduler",
    [SMALTI_SCHEDULER_UNIPC] = "UniPCMultistepScheduler",
    [SMALTI_SCHEDULER_EULER] = "EulerDiscreteScheduler",
    [SMALTI_SCHEDULER_EULER_ANCESTRAL] = "EulerAncestralDiscreteScheduler",
    [SMALTI_SCHEDULER_HEUN] = "HeunDiscreteScheduler",
    [SMALTI_SCHEDULER_DDIM] = "DDIMScheduler",
    [SMALTI_SCHEDULER_LCM] = "LCMScheduler",
    [SMALTI_SCHEDULER_SA_SOLVER] = "SASolverScheduler",
    [SMALTI_SCHEDULER_DDPM] = "DDPMScheduler",
    [SMALTI_SCHEDULER_FLOW_EULER] = "FlowMatchEulerDiscreteScheduler",
    [SMALTI_SCHEDULER_FLOW_HEUN] = "FlowMatchHeunDiscreteScheduler",
};

static const char *const beta_schedules[] = {"linear", "scaled_linear", "squaredcos_cap_v2", NULL};
static const char *const spacings[] = {"linspace", "leading", "trailing", NULL};
static const char *const predictions[] = {"epsilon", "v_prediction", "sample", "flow_prediction", NULL};
static const char *const final_sigmas[] = {"zero", "sigma_min", NULL};
static const char *const solver_types[] = {"midpoint", "heun", NULL};
static const char *const bh_types[] = {"bh2", "bh1", NULL};
static const char *const dpm_algorithms[] = {"dpmsolver++", "sde-dpmsolver++", "dpmsolver", NULL};
static const char *const sa_algorithms[] = {"data_prediction", NULL};
static const char *const interpolations[] = {"linear", NULL};
static const char *const timestep_types[] = {"discrete", NULL};
static const char *const variances[] = {"fixed_small", "fixed_small_log", "fixed_large", "fixed_large_log",
					"learned",     "learned_range",   NULL};

#define CONFIG struct smalti_scheduler_config

enum {
	DPM = 1 << SMALTI_SCHEDULER_DPM_SOLVER,
	UNIPC = 1 << SMALTI_SCHEDULER_UNIPC,
	EULER = 1 << SMALTI_SCHEDULER_EULER,
	EULER_A = 1 << SMALTI_SCHEDULER_EULER_ANCESTRAL,
	HEUN = 1 << SMALTI_SCHEDULER_HEUN,
	DDIM = 1 << SMALTI_SCHEDULER_DDIM,
	LCM = 1 << SMALTI_SCHEDULER_LCM,
	SA = 1 << SMALTI_SCHEDULER_SA_SOLVER,
	DDPM = 1 << SMALTI_SCHEDULER_DDPM,
	FLOW = 1 << SMALTI_SCHEDULER_FLOW_EULER | 1 << SMALTI_SCHEDULER_FLOW_HEUN,
	ALL = (1 << SMALTI_SCHEDULERS) - 1,
	NOISE = ALL & ~FLOW,          /* with the betas of a training on noise */
	OWN = 1 << SMALTI_SCHEDULERS, /* read only from a file of the same class */
};

/* Each class has its own values of algorithm_type and solver_type, so those of another class are ignored. */
static const struct {
	int schedulers; /* that read it */
	struct smalti_field field;
} fields[] = {
    {ALL, {FIELD_INT("num_train_timesteps", OPTIONAL, train_timesteps, 2, 100000)}},
    {NOISE, {FIELD_DOUBLE("beta_start", OPTIONAL, beta_start, 1e-9, 0.999)}},
    {NOISE, {FIELD_DOUBLE("beta_end", OPTIONAL, beta_end, 1e-9, 0.999)}},
    {NOISE, {FIELD_CHOICE("beta_schedule", OPTIONAL, beta_schedule, beta_schedules)}},
    {ALL, {FIELD_CHOICE("prediction_type", OPTIONAL, prediction, predictions)}},
    {NOISE, {FIELD_CHOICE("timestep_spacing", OPTIONAL, spacing, spacings)}},
    {NOISE, {FIELD_INT("steps_offset", OPTIONAL, steps_offset, 0, 1000)}},
    {NOISE, {FIELD_NULL("trained_betas")}},
    {NOISE & ~(SA | HEUN), {FIELD_BOOL("rescale_betas_zero_snr", OPTIONAL, zero_snr)}},
    {SA | HEUN, {FIELD_FALSE("rescale_betas_zero_snr")}},
    {DPM | OWN, {FIELD_CHOICE("algorithm_type", OPTIONAL, algorithm, dpm_algorithms)}},
    {SA | OWN, {FIELD_ONLY("algorithm_type", OPTIONAL, sa_algorithms)}},
    {DPM | OWN, {FIELD_CHOICE("solver_type", OPTIONAL, solver_type, solver_types)}},
    {UNIPC | OWN, {FIELD_CHOICE("solver_type", OPTIONAL, bh, bh_types)}},
    {DPM | UNIPC, {FIELD_INT("solver_order", OPTIONAL, solver_order, 1, 3)}},
    {DPM | UNIPC | SA, {FIELD_BOOL("lower_order_final", OPTIONAL, lower_order_final)}},
    {DPM, {FIELD_BOOL("euler_at_final", OPTIONAL, euler_at_final)}},
    {DPM, {FIELD_DOUBLE("lambda_min_clipped", NULLABLE, lambda_min_clipped, -INFINITY, INFINITY)}},
    {DPM | UNIPC | EULER, {FIELD_CHOICE("final_sigmas_type", OPTIONAL, final_sigma, final_sigmas)}},
    {SA, {FIELD_FALSE("use_exponential_sigmas")}},
    {SA, {FIELD_FALSE("use_beta_sigmas")}},
    {SA, {FIELD_FALSE("use_flow_sigmas")}},
    {DPM | UNIPC | FLOW, {FIELD_DOUBLE("flow_shift", NULLABLE, flow_shift, 1e-3, 1e3)}},
    {DPM | UNIPC | FLOW, {FIELD_DOUBLE("shift", NULLABLE, flow_shift, 1e-3, 1e3)}},
    {UNIPC | FLOW, {FIELD_FALSE("use_dynamic_shifting")}},
    {UNIPC | FLOW, {FIELD_NULL("shift_terminal")}},
    {FLOW | OWN, {FIELD_FALSE("use_karras_sigmas")}},
    {FLOW | OWN, {FIELD_FALSE("use_exponential_sigmas")}},
    {FLOW | OWN, {FIELD_FALSE("use_beta_sigmas")}},
    {FLOW, {FIELD_FALSE("invert_sigmas")}},
    {FLOW, {FIELD_FALSE("stochastic_sampling")}},
    {DPM | SA, {FIELD_NULL("variance_type")}},
    {DDPM, {FIELD_CHOICE("variance_type", NULLABLE, variance, variances)}},
    {EULER, {FIELD_ONLY("interpolation_type", OPTIONAL, interpolations)}},
    {EULER, {FIELD_ONLY("timestep_type", OPTIONAL, timestep_types)}},
    {EULER | UNIPC, {FIELD_NULL("sigma_min")}},
    {EULER | UNIPC, {FIELD_NULL("sigma_max")}},
    {UNIPC, {FIELD_BOOL("predict_x0", OPTIONAL, predict_x0)}},
    {UNIPC, {FIELD_NULL("solver_p")}},
    {DDIM | LCM | DDPM | HEUN, {FIELD_BOOL("clip_sample", OPTIONAL, clip_sample)}},
    {DDIM | LCM | DDPM | HEUN, {FIELD_DOUBLE("clip_sample_range", OPTIONAL, clip_sample_range, 1e-6, 1e6)}},
    {DDIM | LCM, {FIELD_BOOL("set_alpha_to_one", OPTIONAL, set_alpha_to_one)}},
    {LCM, {FIELD_INT("original_inference_steps", OPTIONAL, original_inference_steps, 1, 100000)}},
    {LCM, {FIELD_DOUBLE("timestep_scaling", OPTIONAL, timestep_scaling, 1e-6, 1e6)}},
    {SA, {FIELD_INT("predictor_order", OPTIONAL, predictor_order, 1, 2)}},
    {SA, {FIELD_INT("corrector_order", OPTIONAL, corrector_order, 1, 2)}},
    {NOISE & ~(EULER | EULER_A | HEUN), {FIELD_FALSE("thresholding")}},
};

/* The keys that choose the sigmas, of which one at most is true. */
static const struct {
	int schedulers;
	const char *key;
	enum smalti_sigmas sigmas;
} curves[] = {
    {DPM | UNIPC | EULER | HEUN | SA, "use_karras_sigmas", SMALTI_SIGMAS_KARRAS},
    {DPM | UNIPC | EULER | HEUN, "use_exponential_sigmas", SMALTI_SIGMAS_EXPONENTIAL},
    {DPM | UNIPC | EULER | HEUN, "use_beta_sigmas", SMALTI_SIGMAS_BETA},
    {DPM, "use_lu_lambdas", SMALTI_SIGMAS_LU},
    {DPM | UNIPC, "use_flow_sigmas", SMALTI_SIGMAS_FLOW},
};

static struct smalti_scheduler_config defaults_of(enum smalti_scheduler scheduler)
{
	const int is = 1 << scheduler;
	struct smalti_scheduler_config config = {
	    .scheduler = scheduler,
	    .train_timesteps = 1000,
	    .beta_start = 0.0001,
	    .beta_end = 0.02,
	    .beta_schedule = SMALTI_BETAS_LINEAR,
	    .spacing = SMALTI_SPACING_LINSPACE,
	    .flow_shift = 1,
	    .solver_order = 2,
	    .lower_order_final = true,
	    .lambda_min_clipped = -INFINITY,
	    .predict_x0 = true,
	    .predictor_order = 2,
	    .corrector_order = 2,
	    .clip_sample_range = 1,
	    .set_alpha_to_one = true,
	    .original_inference_steps = 50,
	    .timestep_scaling = 10,
	};
	if (is & (DDIM | LCM | DDPM))
		config.spacing = SMALTI_SPACING_LEADING;
	if (is & (LCM | HEUN)) {
		config.beta_start = 0.00085;
		config.beta_end = 0.012;
	}
	if (is & LCM)
		config.beta_schedule = SMALTI_BETAS_SCALED_LINEAR;
	if (is & FLOW)
		config.sigmas = SMALTI_SIGMAS_FLOW;
	return config;
}

static int read_curve(const cJSON *file, struct smalti_scheduler_config *config, struct smalti_error *error)
{
	const char *chosen = NULL;
	for (size_t i = 0; i < COUNT_OF(curves); i++) {
		bool use = false;
		if (!(curves[i].schedulers >> config->scheduler & 1))
			continue;
		if (smalti_json_bool(file, curves[i].key, SMALTI_JSON_NULLABLE, &use, error))
			return -1;
		if (use && chosen)
			return smalti_fail(error, SMALTI_EFORMAT,
					   "\"%s\" and \"%s\" are both true; expected one of them", chosen,
					   curves[i].key);
		if (use) {
			chosen = curves[i].key;
			config->sigmas = curves[i].sigmas;
		}
	}
	return 0;
}

/* Reads UniPC's list of steps without a corrector, which is usually empty. */
static int read_disabled_correctors(const cJSON *file, struct smalti_scheduler_config *config,
				    struct smalti_error *error)
{
	const char *const key = "disable_corrector";
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(file, key);
	if (config->scheduler != SMALTI_SCHEDULER_UNIPC || (cJSON_IsArray(list) && !list->child))
		return 0;
	return smalti_json_ints(file, key, SMALTI_JSON_OPTIONAL, 0, 100000, SMALTI_MAX_DISABLED_CORRECTORS,
				config->disabled_corrector, &config->disabled_correctors, error);
}

static int check_prediction(const struct smalti_scheduler_config *config, struct smalti_error *error)
{
	const bool of_flow = config->prediction == SMALTI_PREDICTS_FLOW;
	if (of_flow != (config->sigmas == SMALTI_SIGMAS_FLOW))
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "the model's \"prediction_type\" is %s, but the sigmas of %s are %s; models "
		    "of flow need schedulers of flow (\"use_flow_sigmas\", or a FlowMatch class), "
		    "others do not have them",
		    predictions[config->prediction], classes[config->scheduler],
		    of_flow ? "not of flow" : "of flow");
	if (config->zero_snr && config->prediction == SMALTI_PREDICTS_EPSILON &&
	    1 << config->scheduler & (DDIM | LCM | DDPM))
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"rescale_betas_zero_snr\" with \"prediction_type\" epsilon leaves %s no "
				   "first step; expected v_prediction or sample",
				   classes[config->scheduler]);
	return 0;
}

static int check_together(const struct smalti_scheduler_config *config, struct smalti_error *error)
{
	if (config->beta_end < config->beta_start)
		return smalti_fail(error, SMALTI_EFORMAT, "\"beta_end\" %g is below \"beta_start\" %g",
				   config->beta_end, config->beta_start);
	if (config->scheduler == SMALTI_SCHEDULER_LCM &&
	    config->original_inference_steps > config->train_timesteps)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"original_inference_steps\" %lld is above \"num_train_timesteps\" %lld",
				   (long long)config->original_inference_steps,
				   (long long)config->train_timesteps);
	return check_prediction(config, error);
}

/* Reads the file of the class `name`. */
static int parse_as(const cJSON *file, enum smalti_scheduler scheduler, const char *name,
		    struct smalti_scheduler_config *config, struct smalti_error *error)
{
	const bool own = !strcmp(name, classes[scheduler]);
	*config = defaults_of(scheduler);
	config->clip_sample = own && scheduler == SMALTI_SCHEDULER_DDPM;
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		if (fields[i].schedulers >> scheduler & 1 && (own || !(fields[i].schedulers & OWN)) &&
		    smalti_fields_read(file, &fields[i].field, 1, config, error))
			return -1;
	if (!strncmp(name, "FlowMatch", strlen("FlowMatch")))
		config->prediction = SMALTI_PREDICTS_FLOW;
	if (config->variance > SMALTI_VARIANCE_OTHER)
		config->variance = SMALTI_VARIANCE_OTHER;
	if (read_curve(file, config, error) || read_disabled_correctors(file, config, error))
		return -1;
	return check_together(config, error);
}

/* Finds the class that model_index.json names. */
static int find_class(const char *class, int *scheduler, struct smalti_error *error)
{
	char list[512] = "";
	for (int i = 0; i < SMALTI_SCHEDULERS; i++) {
		if (strcmp(class, classes[i]) == 0) {
			*scheduler = i;
			return 0;
		}
		smalti_append(list, sizeof(list), ", ", "%s", classes[i]);
	}
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "the class of \"scheduler\" in model_index.json is %.100s, which cannot be run; "
			   "these can: %s",
			   class, list);
}

int smalti_scheduler_config_parse(const cJSON *file, const char *class,
				  struct smalti_scheduler_config *config, struct smalti_error *error)
{
	int scheduler = 0;
	if (smalti_json_choice(file, "_class_name", class ? SMALTI_JSON_OPTIONAL : SMALTI_JSON_REQUIRED,
			       classes, &scheduler, error) ||
	    (class && find_class(class, &scheduler, error)))
		return -1;
	return smalti_scheduler_config_parse_as(file, (enum smalti_scheduler)scheduler, config, error);
}

int smalti_scheduler_config_parse_as(const cJSON *file, enum smalti_scheduler scheduler,
				     struct smalti_scheduler_config *config, struct smalti_error *error)
{
	const char *name = "";
	if (smalti_json_string(file, "_class_name", SMALTI_JSON_OPTIONAL, &name, error))
		return -1;
	return parse_as(file, scheduler, name, config, error);
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
