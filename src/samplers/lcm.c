/* SPDX-License-Identifier: Apache-2.0 */
/* Latent consistency models (docs/reference.md 4.4). */
#include "samplers/schedule.h"

#include <math.h>

void smalti_fill_lcm(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const double variance = 0.25; /* of the data: 0.5 squared */
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		const double *alpha_bar = schedule->train->alpha_bar;
		double scaled = schedule->timestep[i] * schedule->config->timestep_scaling;
		double total = scaled * scaled + variance;
		smalti_predict_x0(step, schedule->config->prediction,
				  smalti_point_of_alpha_bar(alpha_bar[(int64_t)schedule->timestep[i]]));
		step->next.x = variance / total;
		step->next.m = scaled / sqrt(total);
		if (i < schedule->steps - 1) {
			struct smalti_point t =
			    smalti_point_of_alpha_bar(alpha_bar[(int64_t)schedule->timestep[i + 1]]);
			step->next.x *= t.alpha;
			step->next.m *= t.alpha;
			step->next.noise = t.sigma;
			step->draws_noise = true;
		}
	}
}
