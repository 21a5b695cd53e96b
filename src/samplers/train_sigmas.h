/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_SAMPLERS_TRAIN_SIGMAS_H
#define SMALTI_SAMPLERS_TRAIN_SIGMAS_H

#include "base/error.h"
#include "samplers/config.h"

/* The noise levels that the model was trained on (docs/reference.md 4.2): per training timestep,
 * rounded to f32 just where torch rounds. */
struct smalti_train_sigmas {
	int64_t count;
	double *alpha_bar; /* products of 1 - beta, falling */
	double *sigma;     /* sqrt((1 - alpha_bar) / alpha_bar), rising, positive, finite */
};

int smalti_train_sigmas_init(struct smalti_train_sigmas *train, const struct smalti_scheduler_config *config,
			     struct smalti_error *error);
void smalti_train_sigmas_clear(struct smalti_train_sigmas *train);

/* sigma at a fractional timestep in [0, count - 1], linear between its neighbours. */
double smalti_train_sigmas_sigma_at(const struct smalti_train_sigmas *train, double timestep);

/* The fractional timestep of a sigma, linear in its logarithm. */
double smalti_train_sigmas_timestep_of(const struct smalti_train_sigmas *train, double sigma);

/* One noise level as x = alpha · x0 + sigma · noise with alpha² + sigma² = 1. */
struct smalti_point {
	double alpha, sigma;
	double lambda; /* ln(alpha / sigma), +infinity where there is no noise */
};

struct smalti_point smalti_point_of_alpha_bar(double alpha_bar);
struct smalti_point smalti_point_of_ratio(double ratio); /* sigma / alpha, as in the table above */

#endif
