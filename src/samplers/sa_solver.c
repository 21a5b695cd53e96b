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

/* What x, the noise, and the newer and the older prediction are multiplied by. */
struct weights {
	double x, noise, newer, older;
};

/* Returns the weights from level s to level t, with predictions at lambda `newer` and, for order 2, at
 * `older`. */
static struct weights advance(struct smalti_point s, struct smalti_point t, double tau, int64_t order,
			      double newer, double older)
{
	double q = 1 + tau * tau, h = t.lambda - s.lambda;
	double flat = exponential_integral(0, q, s.lambda, t.lambda);
	double of_newer = flat, of_older = 0;
	if (order == 2) {
		double linear = exponential_integral(1, q, s.lambda, t.lambda);
		double extra = exp(q * t.lambda) * (h * h / 2 - (h * q - 1 + exp(-q * h)) / (q * q));
		of_newer = (linear - older * flat + extra) / (newer - older);
		of_older = -(linear - newer * flat + extra) / (newer - older);
	}
	double weight = q * t.sigma * exp(-tau * tau * t.lambda);
	return (struct weights){
	    .x = exp(-tau * tau * h) * t.sigma / s.sigma,
	    .noise = t.sigma * sqrt(-expm1(-2 * tau * tau * h)),
	    .newer = weight * of_newer,
	    .older = weight * of_older,
	};
}

static int64_t predictor_order(const struct smalti_schedule *schedule, int64_t i)
{
	bool last = i == schedule->steps - 1 && schedule->config->lower_order_final;
	bool slope_is_known = i > schedule->first && !smalti_schedule_rests(schedule, i - 1);
	return last || !slope_is_known ? 1 : schedule->config->predictor_order;
}

/* Returns the terms that repeat step i, now that x0 at its end is known. */
static struct smalti_sampler_terms correct(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_point s = smalti_schedule_point(schedule, i);
	const struct smalti_point t = smalti_schedule_point(schedule, i + 1);
	const struct weights w = advance(s, t, tau_at(schedule->timestep[i]),
					 schedule->config->corrector_order, t.lambda, s.lambda);
	return (struct smalti_sampler_terms){
	    .last_x = w.x, .last_noise = w.noise, .m = w.newer, .last_m = {w.older}};
}

void smalti_fill_sa_solver(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	double older = 0;
	sampler->predictions = 1;
	sampler->history = 3;
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		const struct smalti_point s = smalti_schedule_point(schedule, i);
		const struct smalti_point t = smalti_schedule_point(schedule, i + 1);
		smalti_predict_x0(step, schedule->config->prediction, s);
		step->corrects = i > schedule->first && !smalti_schedule_rests(schedule, i - 1) &&
				 !schedule->config->repaints;
		if (step->corrects)
			step->correct = correct(schedule, i - 1);
		const struct weights w = advance(s, t, tau_at(schedule->timestep[i]),
						 predictor_order(schedule, i), s.lambda, older);
		step->next = (struct smalti_sampler_terms){
		    .x = w.x, .noise = w.noise, .m = w.newer, .last_m = {w.older}};
		step->draws_noise = true;
		older = s.lambda;
	}
}
