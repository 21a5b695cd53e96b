/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The values of scheduler_config.json (docs/reference.md 4.1, 4.4 and 4.5). An enum lists only values with
 * formulas in docs/reference.md 4; the parser refuses every other one. Not kept, because only one value is
 * accepted: trained_betas null, thresholding and dynamic shifting false, solver_p null, Euler's
 * interpolation_type "linear" and timestep_type "discrete", and the algorithm_type "data_prediction" of the
 * SA-Solver. */
enum smalti_scheduler {
	SMALTI_SCHEDULER_DPM_SOLVER,      /* DPMSolverMultistepScheduler */
	SMALTI_SCHEDULER_UNIPC,           /* UniPCMultistepScheduler */
	SMALTI_SCHEDULER_EULER,           /* EulerDiscreteScheduler */
	SMALTI_SCHEDULER_EULER_ANCESTRAL, /* EulerAncestralDiscreteScheduler */
	SMALTI_SCHEDULER_HEUN,            /* HeunDiscreteScheduler */
	SMALTI_SCHEDULER_DDIM,            /* DDIMScheduler */
	SMALTI_SCHEDULER_LCM,             /* LCMScheduler */
	SMALTI_SCHEDULER_SA_SOLVER,       /* SASolverScheduler */
	SMALTI_SCHEDULER_DDPM,            /* DDPMScheduler; its only step is that of one-step (DMD) models */
	SMALTI_SCHEDULER_FLOW_EULER,      /* FlowMatchEulerDiscreteScheduler */
	SMALTI_SCHEDULER_FLOW_HEUN,       /* FlowMatchHeunDiscreteScheduler */
	SMALTI_SCHEDULERS
};

enum smalti_beta_schedule {
	SMALTI_BETAS_LINEAR,
	SMALTI_BETAS_SCALED_LINEAR, /* linear in sqrt(beta) */
	SMALTI_BETAS_SQUARED_COSINE /* "squaredcos_cap_v2" */
};

/* Of the DPM-Solver: which it integrates, with added noise or without. */
enum smalti_algorithm { SMALTI_DPM_SOLVER_PP, SMALTI_SDE_DPM_SOLVER_PP, SMALTI_DPM_SOLVER_EPSILON };

enum smalti_solver_type { SMALTI_SOLVER_MIDPOINT, SMALTI_SOLVER_HEUN };

/* UniPC's function B(h). */
enum smalti_bh { SMALTI_BH2, SMALTI_BH1 };

enum smalti_spacing { SMALTI_SPACING_LINSPACE, SMALTI_SPACING_LEADING, SMALTI_SPACING_TRAILING };

/* How noise levels are spaced: at spaced timesteps of the training, or by a curve of their own. */
enum smalti_sigmas {
	SMALTI_SIGMAS_TRAINED,
	SMALTI_SIGMAS_KARRAS,
	SMALTI_SIGMAS_EXPONENTIAL,
	SMALTI_SIGMAS_BETA,
	SMALTI_SIGMAS_LU,
	SMALTI_SIGMAS_FLOW /* x = (1 - sigma) · x0 + sigma · noise */
};

/* What the model's output is: the noise, the velocity, the clean latents, or noise less clean latents. */
enum smalti_prediction {
	SMALTI_PREDICTS_EPSILON,
	SMALTI_PREDICTS_V,
	SMALTI_PREDICTS_SAMPLE,
	SMALTI_PREDICTS_FLOW /* if and only if the sigmas are of flow */
};

enum smalti_final_sigma { SMALTI_FINAL_SIGMA_ZERO, SMALTI_FINAL_SIGMA_MIN };

/* Of DDPM's noise. Those from SMALTI_VARIANCE_OTHER on are read, as one-step models need none. */
enum smalti_variance { SMALTI_VARIANCE_SMALL, SMALTI_VARIANCE_SMALL_LOG, SMALTI_VARIANCE_OTHER };

enum { SMALTI_MAX_DISABLED_CORRECTORS = 64 };

struct smalti_scheduler_config {
	enum smalti_scheduler scheduler;

	/* not in the file: image to image (docs/reference.md 4.6) */
	double strength; /* above 0 to 1: which share of the steps are taken; 0: all, from noise */
	bool repaints;   /* parts of the latents are put back behind each step: no corrector, which would
			    begin from latents without them */

	/* all schedulers but those of flow matching */
	int64_t train_timesteps; /* num_train_timesteps, 2 … 100000; these have it, too */
	double beta_start, beta_end;
	enum smalti_beta_schedule beta_schedule;
	enum smalti_prediction prediction;
	enum smalti_spacing spacing; /* timestep_spacing; LCM does not use it */
	int64_t steps_offset;        /* added to timesteps of leading spacing */
	bool zero_snr;               /* rescale_betas_zero_snr */

	/* DPM-Solver, UniPC, SA-Solver, Euler, Heun */
	enum smalti_sigmas sigmas;           /* use_karras_sigmas and so on; flow matching: always flow */
	double flow_shift;                   /* also of flow matching */
	enum smalti_final_sigma final_sigma; /* DPM-Solver, UniPC and Euler; the SA-Solver always ends on
						sigma_min, Heun and Euler ancestral on 0 */

	/* DPM-Solver, UniPC; lower_order_final also of the SA-Solver */
	int64_t solver_order; /* 1 to 3 */
	bool lower_order_final;

	/* DPM-Solver */
	enum smalti_algorithm algorithm;
	enum smalti_solver_type solver_type;
	bool euler_at_final;
	double lambda_min_clipped; /* -infinity: none */

	/* UniPC */
	enum smalti_bh bh; /* its solver_type */
	bool predict_x0;
	int disabled_correctors;
	int64_t disabled_corrector[SMALTI_MAX_DISABLED_CORRECTORS]; /* no corrector behind these steps */

	/* SA-Solver */
	int64_t predictor_order, corrector_order; /* 1 or 2 */

	/* DDIM, LCM, DDPM, Heun */
	bool clip_sample; /* clamp x0 to ±clip_sample_range; absent: true in a DDPM file, else false (4.4) */
	double clip_sample_range;

	/* DDIM */
	bool set_alpha_to_one;
	double eta; /* share of added noise, 0 to 1; not in the file */

	/* DDPM */
	enum smalti_variance variance;

	/* LCM */
	int64_t original_inference_steps;
	double timestep_scaling;
};
