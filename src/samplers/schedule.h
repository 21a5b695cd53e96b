/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SAMPLERS_SCHEDULE_H
#define SMALTI_SAMPLERS_SCHEDULE_H

#include "samplers/sampler.h"
#include "samplers/train_sigmas.h"

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

/* Fills the steps, which come with their timestep, clip, history and an input_scale of 1, and zeros
 * elsewhere. */
typedef void smalti_fill(const struct smalti_schedule *schedule, struct smalti_sampler *sampler);
smalti_fill smalti_fill_dpm_solver, smalti_fill_sa_solver, smalti_fill_euler, smalti_fill_ddim,
    smalti_fill_lcm, smalti_fill_dmd;

/* Sets x0 of a step whose latents are alpha · x0 + sigma · noise. */
void smalti_predict_x0(struct smalti_sampler_step *step, enum smalti_prediction prediction,
		       struct smalti_point point);

#endif
