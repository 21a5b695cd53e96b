/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The values of scheduler_config.json (docs/reference.md 4.1 and 4.4). An enum lists only values with
 * formulas in docs/reference.md 4; the parser refuses every other one. Not kept, because only one value is
 * accepted: trained_betas null, variance_type null, thresholding, rescale_betas_zero_snr and the exponential,
 * beta, lu_lambdas and flow sigmas false, lambda_min_clipped -infinity, Euler's interpolation_type "linear"
 * and timestep_type "discrete", and the algorithm_type "data_prediction" of the SA-Solver. */
enum smalti_scheduler {
	SMALTI_SCHEDULER_DPM_SOLVER, /* DPMSolverMultistepScheduler */
	SMALTI_SCHEDULER_EULER,      /* EulerDiscreteScheduler */
	SMALTI_SCHEDULER_DDIM,       /* DDIMScheduler */
	SMALTI_SCHEDULER_LCM,        /* LCMScheduler */
	SMALTI_SCHEDULER_SA_SOLVER,  /* SASolverScheduler */
	SMALTI_SCHEDULER_DDPM,       /* DDPMScheduler, for one-step (DMD) models only */
	SMALTI_SCHEDULERS
};

enum smalti_beta_schedule {
	SMALTI_BETAS_LINEAR,
	SMALTI_BETAS_SCALED_LINEAR, /* linear in sqrt(beta) */
};

enum smalti_algorithm { SMALTI_DPM_SOLVER_PP }; /* "dpmsolver++" */

enum smalti_solver_type { SMALTI_SOLVER_MIDPOINT, SMALTI_SOLVER_HEUN };

enum smalti_spacing { SMALTI_SPACING_LINSPACE, SMALTI_SPACING_LEADING, SMALTI_SPACING_TRAILING };

/* What the model's output is: the noise, the velocity or the clean latents. */
enum smalti_prediction { SMALTI_PREDICTS_EPSILON, SMALTI_PREDICTS_V, SMALTI_PREDICTS_SAMPLE };

enum smalti_final_sigma { SMALTI_FINAL_SIGMA_ZERO, SMALTI_FINAL_SIGMA_MIN };

struct smalti_scheduler_config {
	enum smalti_scheduler scheduler;

	/* all schedulers */
	int64_t train_timesteps; /* num_train_timesteps, 2 … 100000 */
	double beta_start, beta_end;
	enum smalti_beta_schedule beta_schedule;
	enum smalti_prediction prediction;
	enum smalti_spacing spacing; /* timestep_spacing; LCM does not use it */
	int64_t steps_offset;        /* added to timesteps of leading spacing */

	/* DPM-Solver, SA-Solver, Euler */
	bool karras_sigmas; /* use_karras_sigmas */
	enum smalti_final_sigma
	    final_sigma; /* DPM-Solver and Euler; the SA-Solver always ends on sigma_min */

	/* DPM-Solver; lower_order_final also of the SA-Solver */
	enum smalti_algorithm algorithm;
	enum smalti_solver_type solver_type;
	int64_t solver_order; /* 1 or 2 */
	bool lower_order_final;
	bool euler_at_final;

	/* SA-Solver */
	int64_t predictor_order, corrector_order; /* 1 or 2 */

	/* DDIM, LCM, DDPM */
	bool clip_sample; /* clamp x0 to ±clip_sample_range; absent: true in a DDPM file, else false (4.4) */
	double clip_sample_range;

	/* DDIM */
	bool set_alpha_to_one;

	/* LCM */
	int64_t original_inference_steps;
	double timestep_scaling;
};
