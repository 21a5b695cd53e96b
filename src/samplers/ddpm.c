/* SPDX-License-Identifier: Apache-2.0 */
/* DDPM, and the single step of distilled models (docs/reference.md 4.4 and 4.5). */
#include "samplers/schedule.h"

#include <math.h>

void smalti_fill_ddpm(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const double *alpha_bar = schedule->train->alpha_bar, least = 1e-20;
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		const int64_t now = (int64_t)schedule->timestep[i];
		const bool last = i == schedule->steps - 1;
		const double from = alpha_bar[now],
			     to = last ? 1 : alpha_bar[(int64_t)schedule->timestep[i + 1]];
		const double ratio = from / to, left = (1 - to) / (1 - from);
		smalti_predict_x0(step, schedule->config->prediction, smalti_point_of_alpha_bar(from));
		step->next.m = sqrt(to) * (1 - ratio) / (1 - from);
		step->next.x = sqrt(ratio) * left;
		step->draws_noise = now > 0 && schedule->steps > 1;
		if (step->draws_noise)
			step->next.noise = sqrt(fmax(left * (1 - ratio), least));
	}
}
