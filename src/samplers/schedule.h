/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "samplers/config.h"
#include "samplers/sampler.h"

/* The noise levels that the model was trained on (docs/reference.md 4.2 and 4.5), for each training timestep,
 * rounded to f32 only where torch rounds. */
struct smalti_train_sigmas {
	int64_t count;
	double *alpha_bar; /* products of 1 - beta, falling */
	double *sigma;     /* sqrt((1 - alpha_bar) / alpha_bar), rising, positive, finite; not
			      so the last of zero_snr */
};

/* Fills the levels; clear them also on failure. */
int smalti_train_sigmas_init(struct smalti_train_sigmas *train, const struct smalti_scheduler_config *config,
			     struct smalti_error *error);
void smalti_train_sigmas_clear(struct smalti_train_sigmas *train);

/* Returns sigma at a fractional timestep in [0, count - 1], linear between its neighbours. */
double smalti_train_sigmas_sigma_at(const struct smalti_train_sigmas *train, double timestep);

/* Returns the fractional timestep of a sigma, linear in its logarithm. */
double smalti_train_sigmas_timestep_of(const struct smalti_train_sigmas *train, double sigma);

/* One noise level as x = alpha · x0 + sigma · noise. */
struct smalti_point {
	double alpha, sigma;
	double lambda; /* ln(alpha / sigma), +infinity where there is no noise */
};

struct smalti_point smalti_point_of_alpha_bar(double alpha_bar); /* alpha² + sigma² = 1 */

/* A scheduler is three functions: one places the steps among the training timesteps, one turns the
 * places into coefficients, and one says what latents are at a place. */
struct smalti_schedule {
	const struct smalti_scheduler_config *config;
	const struct smalti_train_sigmas *train;
	int64_t steps;    /* 1 to train->count */
	int64_t first;    /* of the steps that are taken: nothing is known of those before it */
	double *timestep; /* [steps], falling */
	double *sigma;    /* [steps + 1], f32 values as in torch, ending with the level of the result */
};

/* Returns level i of the sigmas: alpha² + sigma² = 1, or, of flow, alpha + sigma = 1. */
struct smalti_point smalti_schedule_point(const struct smalti_schedule *schedule, int64_t i);
/* Tells whether step i has no length, as between two equal timesteps. */
static inline bool smalti_schedule_rests(const struct smalti_schedule *schedule, int64_t i)
{
	return schedule->sigma[i] == schedule->sigma[i + 1];
}

/* Returns value i of `count` on the configuration's curve, which falls from `first` to `last`. */
double smalti_sigma_on_curve(const struct smalti_scheduler_config *config, int64_t i, int64_t count,
			     double first, double last);
/* Returns a sigma of flow after the configuration's shift. */
double smalti_flow_sigma(const struct smalti_scheduler_config *config, double sigma);
/* Returns numpy.linspace(from, to, count)[index]. */
double smalti_linspace(double from, double to, int64_t count, int64_t index);

/* Fills timestep, and sigma where the scheduler works on sigmas. Fails, naming the key, where the
 * configuration cannot do that many steps. */
typedef int smalti_place(struct smalti_schedule *schedule, struct smalti_error *error);
smalti_place smalti_place_dpm_solver, smalti_place_unipc, smalti_place_sa_solver, smalti_place_euler,
    smalti_place_flow_match, smalti_place_ddim, smalti_place_ddpm, smalti_place_lcm;

/* Returns the level of latents before step i < steps. */
typedef struct smalti_sampler_level smalti_level(const struct smalti_schedule *schedule, int64_t i);
smalti_level smalti_level_of_point, smalti_level_of_sigma, smalti_level_of_timestep;

/* Returns the row of step i of a scheduler with one row for each. */
static inline struct smalti_sampler_step *smalti_row(const struct smalti_schedule *schedule,
						     struct smalti_sampler *sampler, int64_t i)
{
	return &sampler->step[i - schedule->first];
}

/* Fills the steps from the first on, which come with their timestep, clip and an input_scale of 1, and the
 * sampler's initial_sigma, which comes as 1, and its history; all else is 0. */
typedef void smalti_fill(const struct smalti_schedule *schedule, struct smalti_sampler *sampler);
smalti_fill smalti_fill_dpm_solver, smalti_fill_unipc, smalti_fill_sa_solver, smalti_fill_euler,
    smalti_fill_euler_ancestral, smalti_fill_heun, smalti_fill_ddim, smalti_fill_ddpm, smalti_fill_lcm;

/* Set the prediction of a step at that level: clean latents, or noise. */
void smalti_predict_x0(struct smalti_sampler_step *step, enum smalti_prediction prediction,
		       struct smalti_point point);
void smalti_predict_noise(struct smalti_sampler_step *step, enum smalti_prediction prediction,
			  struct smalti_point point);
