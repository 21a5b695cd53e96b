/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "samplers/config.h"
#include "samplers/sampler.h"

/* The noise levels that the model was trained on (docs/reference.md 4.2), for each training timestep, rounded
 * to f32 only where torch rounds. */
struct smalti_train_sigmas {
	int64_t count;
	double *alpha_bar; /* products of 1 - beta, falling */
	double *sigma;     /* sqrt((1 - alpha_bar) / alpha_bar), rising, positive, finite */
};

/* Fills the levels; clear them also on failure. */
int smalti_train_sigmas_init(struct smalti_train_sigmas *train, const struct smalti_scheduler_config *config,
			     struct smalti_error *error);
void smalti_train_sigmas_clear(struct smalti_train_sigmas *train);

/* Returns sigma at a fractional timestep in [0, count - 1], linear between its neighbours. */
double smalti_train_sigmas_sigma_at(const struct smalti_train_sigmas *train, double timestep);

/* Returns the fractional timestep of a sigma, linear in its logarithm. */
double smalti_train_sigmas_timestep_of(const struct smalti_train_sigmas *train, double sigma);

/* One noise level as x = alpha · x0 + sigma · noise with alpha² + sigma² = 1. */
struct smalti_point {
	double alpha, sigma;
	double lambda; /* ln(alpha / sigma), +infinity where there is no noise */
};

struct smalti_point smalti_point_of_alpha_bar(double alpha_bar);
struct smalti_point smalti_point_of_ratio(double ratio); /* sigma / alpha, as in the table above */

/* A scheduler is two functions: one places the steps among the training timesteps, one turns the
 * places into coefficients. */
struct smalti_schedule {
	const struct smalti_scheduler_config *config;
	const struct smalti_train_sigmas *train;
	int64_t steps;    /* 1 to train->count */
	double *timestep; /* [steps], falling */
	double *sigma;    /* [steps + 1], f32 values as in torch, ending with the level of the result */
};

/* Fills timestep, and sigma where the scheduler works on sigmas. Fails, naming the key, where the
 * configuration cannot do that many steps. */
typedef int smalti_place(struct smalti_schedule *schedule, struct smalti_error *error);
smalti_place smalti_place_dpm_solver, smalti_place_sa_solver, smalti_place_euler, smalti_place_ddim,
    smalti_place_lcm, smalti_place_dmd;

/* Fills the steps, which come with their timestep, clip, history and an input_scale of 1; all else is 0. */
typedef void smalti_fill(const struct smalti_schedule *schedule, struct smalti_sampler *sampler);
smalti_fill smalti_fill_dpm_solver, smalti_fill_sa_solver, smalti_fill_euler, smalti_fill_ddim,
    smalti_fill_lcm, smalti_fill_dmd;

/* Sets x0 of a step whose latents are alpha · x0 + sigma · noise. */
void smalti_predict_x0(struct smalti_sampler_step *step, enum smalti_prediction prediction,
		       struct smalti_point point);
