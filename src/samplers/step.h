/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum { SMALTI_SAMPLER_PREDICTIONS = 3, SMALTI_SAMPLER_HISTORY = SMALTI_SAMPLER_PREDICTIONS + 2 };

/* What a sum multiplies each array by: those of this step, and those that the steps before left. */
struct smalti_sampler_terms {
	double x, m, output, noise;
	double last_x, last_m[SMALTI_SAMPLER_PREDICTIONS], last_noise;
};

/* Latents of this level are clean · x0 + noise · z, with z of variance 1. */
struct smalti_sampler_level {
	double clean, noise;
};

/* One step, with one call of the model. With x the latents, o the model's output for x · input_scale at
 * `timestep`, z this step's noise, and what the steps before left (their predictions m', m'', m''', the
 * latents x' that the last one started from, and its noise z'):
 *
 *     m = prediction.x · x + prediction.output · o, clamped to ±clip unless clip is 0 or m infinite
 *     x = the sum of `correct` over x', m, m' … m''', z'                 if corrects
 *     x = the sum of `next` over x, x', m, m' … m''', o, z, z'
 *
 * An array whose coefficient is 0 is not read. Plain data: it can be a task's argument, and
 * device kernels include this, too. */
struct smalti_sampler_step {
	double timestep;    /* the model's input; fractional for Euler */
	double input_scale; /* the model's input is x times this */
	struct {
		double x, output;
	} prediction; /* of the clean latents, or, for solvers that integrate it, of the noise */
	double clip;
	bool corrects;
	struct smalti_sampler_terms correct, next;
	struct smalti_sampler_level level; /* of x behind the step */
	bool draws_noise; /* one smalti_randn of the latents' shape belongs to this step, used or not */
	int predictions;  /* how many are kept: m' … */
	int history; /* arrays kept in all, in this order: the predictions, x' if there are more, z' if more
		      */
};
