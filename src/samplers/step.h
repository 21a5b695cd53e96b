/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One step. With x the latents, o the model's output for x · input_scale at `timestep`, and what
 * the previous step left (its clean prediction m', and where a corrector needs it the latents x'
 * and the noise z' that it started from):
 *
 *     m = x0.x · x + x0.output · o, clamped to ±clip unless clip is 0 or m infinite
 *     x = correct.x · x' + correct.m · m + correct.previous_m · m' + correct.noise · z'   if corrects
 *     x = next.x · x + next.m · m + next.previous_m · m' + next.output · o + next.noise · z
 *
 * An array whose coefficient is 0 is not read. Plain data: it can be a task's argument, and
 * device kernels include this, too. */
struct smalti_sampler_step {
	double timestep;    /* the model's input; fractional for Euler */
	double input_scale; /* the model's input is x times this */
	struct {
		double x, output;
	} x0;
	double clip;
	bool corrects;
	struct smalti_sampler_terms {
		double x, m, previous_m, output, noise;
	} correct, next;
	bool draws_noise; /* one smalti_randn of the latents' shape belongs to this step, used or not */
	int history;      /* as in struct smalti_sampler */
};
