/* SPDX-License-Identifier: Apache-2.0 */
/* UniPC: a predictor and corrector of order 1 to 3 (docs/reference.md 4.5). */
#include "samplers/schedule.h"

#include <math.h>

enum { MAX_ORDER = SMALTI_SAMPLER_PREDICTIONS };

/* Solves sum over k of r[k]^q · rho[k] = b[q] for q < count, by elimination. */
static void solve(const double r[MAX_ORDER], const double b[MAX_ORDER], int count, double rho[MAX_ORDER])
{
	double a[MAX_ORDER][MAX_ORDER + 1];
	for (int q = 0; q < count; q++) {
		for (int k = 0; k < count; k++)
			a[q][k] = q == 0 ? 1 : a[q - 1][k] * r[k];
		a[q][count] = b[q];
	}
	for (int q = 0; q < count; q++)
		for (int below = q + 1; below < count; below++) {
			const double factor = a[below][q] / a[q][q];
			for (int k = q; k <= count; k++)
				a[below][k] -= factor * a[q][k];
		}
	for (int q = count - 1; q >= 0; q--) {
		rho[q] = a[q][count];
		for (int k = q + 1; k < count; k++)
			rho[q] -= a[q][k] * rho[k];
		rho[q] /= a[q][q];
	}
}

/* An interval from level s on, with `order` predictions: at s, and further back. */
struct interval {
	struct smalti_point s, t;
	int order;
	double r[MAX_ORDER];   /* places of the older predictions, last 1: of the one at t */
	double rho[MAX_ORDER]; /* weights of their differences from the one at s */
	double slope;          /* factor of these */
};

/* Weighs the differences; `corrects`: that of the prediction at t is among them. */
static void weigh(const struct smalti_scheduler_config *config, bool corrects, struct interval *of)
{
	const double h = of->t.lambda - of->s.lambda, hh = config->predict_x0 ? -h : h;
	const double e = expm1(hh), B = config->bh == SMALTI_BH1 ? hh : e;
	const int count = corrects ? of->order : of->order - 1;
	double b[MAX_ORDER], factorial = 1, phi = e / hh - 1;
	for (int q = 0; q < of->order; q++) {
		b[q] = phi * factorial / B;
		factorial *= q + 2;
		phi = phi / hh - 1 / factorial;
	}
	of->rho[0] = 0.5;
	if (count > 1)
		solve(of->r, b, count, of->rho);
	of->slope = -(config->predict_x0 ? of->t.alpha : of->t.sigma) * B;
}

/* Returns the interval of step i. */
static struct interval interval_of(const struct smalti_schedule *schedule, int64_t i, int order)
{
	struct interval of = {.s = smalti_schedule_point(schedule, i),
			      .t = smalti_schedule_point(schedule, i + 1),
			      .order = order};
	for (int k = 0; k + 1 < order; k++)
		of.r[k] = (smalti_schedule_point(schedule, i - 1 - k).lambda - of.s.lambda) /
			  (of.t.lambda - of.s.lambda);
	of.r[order - 1] = 1;
	return of;
}

/* Returns the order of step i: at most that of the predictions there are, without those behind a step of no
 * length. */
static int order_of(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_scheduler_config *config = schedule->config;
	int64_t order = config->solver_order;
	if (config->lower_order_final)
		order = smalti_min(order, schedule->steps - i);
	for (int64_t back = 1; back < order; back++)
		if (i - schedule->first < back || smalti_schedule_rests(schedule, i - back))
			return (int)back;
	return (int)order;
}

/* Returns what x and the prediction at s are multiplied by without any difference. */
static struct smalti_sampler_terms first_order(const struct smalti_scheduler_config *config,
					       struct smalti_point s, struct smalti_point t)
{
	const double h = t.lambda - s.lambda;
	if (config->predict_x0)
		return (struct smalti_sampler_terms){.x = t.sigma / s.sigma, .m = -t.alpha * expm1(-h)};
	return (struct smalti_sampler_terms){.x = t.alpha / s.alpha, .m = -t.sigma * expm1(h)};
}

static struct smalti_sampler_terms predict(const struct smalti_schedule *schedule, int64_t i)
{
	struct interval of = interval_of(schedule, i, order_of(schedule, i));
	struct smalti_sampler_terms next = first_order(schedule->config, of.s, of.t);
	if (of.order == 1 || smalti_schedule_rests(schedule, i))
		return next;
	weigh(schedule->config, false, &of);
	for (int k = 0; k + 1 < of.order; k++) {
		const double weight = of.slope * of.rho[k] / of.r[k];
		next.last_m[k] += weight;
		next.m -= weight;
	}
	return next;
}

/* Returns the terms that repeat step i, now that the prediction at its end, m, is known. */
static struct smalti_sampler_terms correct(const struct smalti_schedule *schedule, int64_t i)
{
	struct interval of = interval_of(schedule, i, order_of(schedule, i));
	const struct smalti_sampler_terms first = first_order(schedule->config, of.s, of.t);
	struct smalti_sampler_terms terms = {.last_x = first.x, .last_m = {first.m}};
	weigh(schedule->config, true, &of);
	for (int k = 0; k + 1 < of.order; k++) {
		const double weight = of.slope * of.rho[k] / of.r[k];
		terms.last_m[k + 1] += weight;
		terms.last_m[0] -= weight;
	}
	terms.m = of.slope * of.rho[of.order - 1];
	terms.last_m[0] -= terms.m;
	return terms;
}

static bool is_corrected(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_scheduler_config *config = schedule->config;
	for (int k = 0; k < config->disabled_correctors; k++)
		if (config->disabled_corrector[k] == i)
			return false;
	return !config->repaints && !smalti_schedule_rests(schedule, i);
}

void smalti_fill_unipc(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const struct smalti_scheduler_config *config = schedule->config;
	sampler->predictions = (int)config->solver_order;
	sampler->history = sampler->predictions + 1;
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		const struct smalti_point s = smalti_schedule_point(schedule, i);
		if (config->predict_x0)
			smalti_predict_x0(step, config->prediction, s);
		else
			smalti_predict_noise(step, config->prediction, s);
		step->corrects = i > schedule->first && is_corrected(schedule, i - 1);
		if (step->corrects)
			step->correct = correct(schedule, i - 1);
		step->next = predict(schedule, i);
	}
}
