/* SPDX-License-Identifier: Apache-2.0 */
/* SA-Solver: stochastic Adams predictor and corrector of order 1 and 2 on predictions of x0
 * (docs/reference.md 4.4). */
#include "samplers/schedule.h"

#include <math.h>

/* Returns how much of the noise is fresh. */
static double tau_at(double timestep)
{
	return timestep >= 200 && timestep <= 800 ? 1 : 0;
}

/* Returns the integral of x^power · e^(q·x) over [from, to]; power 0 or 1. */
static double exponential_integral(int power, double q, double from, double to)
{
	if (power == 0)
		return (exp(q * to) - exp(q * from)) / q;
	return (exp(q * to) * (q * to - 1) - exp(q * from) * (q * from - 1)) / (q * q);
}

/* Returns the terms from level s to level t, with predictions m at lambda `newer` and, for order 2, m' at
 * `older`. */
static struct smalti_sampler_terms advance(struct smalti_point s, struct smalti_point t, double tau,
					   int64_t order, double newer, double older)
{
	double q = 1 + tau * tau, h = t.lambda - s.lambda;
	double flat = exponential_integral(0, q, s.lambda, t.lambda);
	double m = flat, previous_m = 0;
	if (order == 2) {
		double linear = exponential_integral(1, q, s.lambda, t.lambda);
		double extra = exp(q * t.lambda) * (h * h / 2 - (h * q - 1 + exp(-q * h)) / (q * q));
		m = (linear - older * flat + extra) / (newer - older);
		previous_m = -(linear - newer * flat + extra) / (newer - older);
	}
	double weight = q * t.sigma * exp(-tau * tau * t.lambda);
	return (struct smalti_sampler_terms){
	    .x = exp(-tau * tau * h) * t.sigma / s.sigma,
	    .m = weight * m,
	    .previous_m = weight * previous_m,
	    .noise = t.sigma * sqrt(-expm1(-2 * tau * tau * h)),
	};
}

static int64_t predictor_order(const struct smalti_schedule *schedule, int64_t i)
{
	bool last = i == schedule->steps - 1 && schedule->config->lower_order_final;
	bool slope_is_known = i > 0 && schedule->sigma[i] != schedule->sigma[i - 1];
	return last || !slope_is_known ? 1 : schedule->config->predictor_order;
}

void smalti_fill_sa_solver(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	struct smalti_point before = {0};
	for (int64_t i = 0; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = &sampler->step[i];
		struct smalti_point s = smalti_point_of_ratio(schedule->sigma[i]);
		struct smalti_point t = smalti_point_of_ratio(schedule->sigma[i + 1]);
		smalti_predict_x0(step, schedule->config->prediction, s);
		/* The corrector repeats the last interval, now that x0 at its end is known. */
		step->corrects = i > 0 && s.lambda != before.lambda;
		if (step->corrects)
			step->correct = advance(before, s, tau_at(schedule->timestep[i - 1]),
						schedule->config->corrector_order, s.lambda, before.lambda);
		step->next = advance(s, t, tau_at(schedule->timestep[i]), predictor_order(schedule, i),
				     s.lambda, before.lambda);
		step->draws_noise = true;
		before = s;
	}
}
