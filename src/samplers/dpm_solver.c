/* SPDX-License-Identifier: Apache-2.0 */
/* DPM-Solver++ of order 1 and 2 (docs/reference.md 4.3). */
#include "samplers/schedule.h"

#include <math.h>

/* Tells whether step i is of second order. It is not where the reference says so, nor after a step of no
 * length (from a duplicate timestep), which gives no slope. */
static bool second_order(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_scheduler_config *config = schedule->config;
	bool final_is_first_order = config->euler_at_final ||
				    config->final_sigma == SMALTI_FINAL_SIGMA_ZERO ||
				    (config->lower_order_final && schedule->steps < 15);
	if (config->solver_order < 2 || i == 0 || (i == schedule->steps - 1 && final_is_first_order))
		return false;
	return schedule->sigma[i] != schedule->sigma[i - 1];
}

void smalti_fill_dpm_solver(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	for (int64_t i = 0; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = &sampler->step[i];
		struct smalti_point s = smalti_point_of_ratio(schedule->sigma[i]);
		struct smalti_point t = smalti_point_of_ratio(schedule->sigma[i + 1]);
		double h = t.lambda - s.lambda;
		double first = -t.alpha * expm1(-h);

		smalti_predict_x0(step, schedule->config->prediction, s);
		step->next.x = t.sigma / s.sigma;
		step->next.m = first;
		if (second_order(schedule, i)) {
			double h0 = s.lambda - smalti_point_of_ratio(schedule->sigma[i - 1]).lambda;
			/* Times (m - m'): D1 = (m - m') / (h0 / h). */
			double slope = schedule->config->solver_type == SMALTI_SOLVER_MIDPOINT
					   ? 0.5 * first * h / h0
					   : t.alpha * (expm1(-h) + h) / h0;
			step->next.m += slope;
			step->next.previous_m = -slope;
		}
	}
}
