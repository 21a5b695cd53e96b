/* SPDX-License-Identifier: Apache-2.0 */
/* DPM-Solver of order 1 to 3, on predictions of x0, with added noise or without, or of the noise
 * (docs/reference.md 4.3 and 4.5). */
#include "samplers/schedule.h"

#include <math.h>

/* What an algorithm multiplies: x, its newest prediction, and the first and second difference of the last
 * ones. */
struct weights {
	double x, m, first, second, noise;
};

/* Returns the order of step i. It is lower where the reference says so, and behind a step of no length,
 * which gives no slope. */
static int64_t order_of(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_scheduler_config *config = schedule->config;
	const bool few = config->lower_order_final && schedule->steps < 15;
	const bool final_is_first_order =
	    config->euler_at_final || config->final_sigma == SMALTI_FINAL_SIGMA_ZERO || few;
	int64_t order = config->solver_order;
	if (i == schedule->steps - 1 && final_is_first_order)
		order = 1;
	if (i == schedule->steps - 2 && few)
		order = smalti_min(order, 2);
	for (int64_t back = 1; back < order; back++)
		if (i - schedule->first < back || smalti_schedule_rests(schedule, i - back))
			return back;
	return order;
}

/* Returns the weights of a step with differences from s to t; `half`: of an order 2 by the midpoint. */
static struct weights weigh(enum smalti_algorithm algorithm, struct smalti_point s, struct smalti_point t,
			    bool half)
{
	const double h = t.lambda - s.lambda;
	struct weights w = {0};
	double slope = 0, p = 0;
	switch (algorithm) {
	case SMALTI_DPM_SOLVER_PP:
		p = -expm1(-h);
		w = (struct weights){.x = t.sigma / s.sigma, .m = t.alpha * p};
		slope = t.alpha * (1 - p / h);
		w.second = -t.alpha * ((h - p) / (h * h) - 0.5);
		break;
	case SMALTI_SDE_DPM_SOLVER_PP:
		p = -expm1(-2 * h);
		w = (struct weights){
		    .x = t.sigma / s.sigma * exp(-h), .m = t.alpha * p, .noise = t.sigma * sqrt(p)};
		slope = t.alpha * (1 - p / (2 * h));
		w.second = t.alpha * ((p - 2 * h) / (4 * h * h) - 0.5);
		break;
	case SMALTI_DPM_SOLVER_EPSILON:
		p = expm1(h);
		w = (struct weights){.x = t.alpha / s.alpha, .m = -t.sigma * p};
		slope = -t.sigma * (p / h - 1);
		w.second = -t.sigma * ((p - h) / (h * h) - 0.5);
		break;
	}
	w.first = half ? 0.5 * w.m : slope;
	return w;
}

/* Adds the differences of the predictions of step i and of those before it. */
static void add_differences(const struct smalti_schedule *schedule, int64_t i, int64_t order,
			    struct weights w, struct smalti_sampler_terms *next)
{
	double lambda[SMALTI_SAMPLER_PREDICTIONS + 1];
	for (int64_t k = 0; k <= order; k++)
		lambda[k] = smalti_schedule_point(schedule, i + 1 - k).lambda;
	const double h = lambda[0] - lambda[1], r0 = (lambda[1] - lambda[2]) / h;
	double newer = w.first / r0; /* times m - m' */
	if (order == 3) {
		const double r1 = (lambda[2] - lambda[3]) / h, r = r0 + r1;
		const double older = -(w.first * r0 + w.second) / (r * r1); /* times m' - m'' */
		newer = (w.first * (1 + r0 / r) + w.second / r) / r0;
		next->last_m[0] += older;
		next->last_m[1] -= older;
	}
	next->m += newer;
	next->last_m[0] -= newer;
}

void smalti_fill_dpm_solver(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const struct smalti_scheduler_config *config = schedule->config;
	sampler->predictions = sampler->history = (int)config->solver_order - 1;
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		const struct smalti_point s = smalti_schedule_point(schedule, i);
		const struct smalti_point t = smalti_schedule_point(schedule, i + 1);
		const int64_t order = order_of(schedule, i);
		const struct weights w = weigh(config->algorithm, s, t,
					       order == 2 && config->solver_type == SMALTI_SOLVER_MIDPOINT);
		if (config->algorithm == SMALTI_DPM_SOLVER_EPSILON)
			smalti_predict_noise(step, config->prediction, s);
		else
			smalti_predict_x0(step, config->prediction, s);
		step->next = (struct smalti_sampler_terms){.x = w.x, .m = w.m, .noise = w.noise};
		step->draws_noise = config->algorithm == SMALTI_SDE_DPM_SOLVER_PP;
		if (order > 1 && !smalti_schedule_rests(schedule, i))
			add_differences(schedule, i, order, w, &step->next);
	}
}
