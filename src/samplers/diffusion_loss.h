/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The training loss of a diffusion model with learned variance (docs/training.md), in double: differences of
 * the Gaussian's distribution function cancel in f32. */

enum { SMALTI_TRAINING_TIMESTEPS = 1000 };

/* The values of a timestep. β is linear from 1e-4 to 0.02. */
struct smalti_noise_level {
	double beta, log_beta;
	double alpha_bar; /* product of 1 − β up to here */
	double variance,
	    log_variance; /* of x at t − 1, given x at 0 and t; the logarithm at 0 is that at 1 */
	double x0_factor, xt_factor; /* its mean is x0_factor·x₀ + xt_factor·x_t */
};

/* Takes 0 <= t < SMALTI_TRAINING_TIMESTEPS. */
const struct smalti_noise_level *smalti_noise_level(int64_t t);

/* Returns min(SNR, γ) / SNR; 1 where γ is 0. */
double smalti_min_snr(int64_t t, double gamma);

/* Computes x_t = √ᾱ·x₀ + √(1 − ᾱ)·ε in f32. */
void smalti_add_noise(int64_t t, int64_t count, const float *x0, const float *noise, float *xt);

struct smalti_diffusion_loss {
	int64_t t;
	int64_t count;        /* values of a latent */
	bool has_variance;    /* the model's output is noise [count], then where the variance lies [count] */
	bool learns_variance; /* its part of the loss is computed */
	double weight;        /* of the mean square error in the loss */
	double scale;         /* of the gradient */
};

/* The parts of a sample's loss weight·mse + vb; vb in bits per value. */
struct smalti_loss_parts {
	double mse, vb;
};

/* Computes also gradient (NULL: not wanted) = scale · ∂(weight·mse + vb) / ∂output. */
struct smalti_loss_parts smalti_diffusion_loss(const struct smalti_diffusion_loss *loss, const float *x0,
					       const float *noise, const float *output, float *gradient);
