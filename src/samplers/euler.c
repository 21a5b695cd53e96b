/* SPDX-License-Identifier: Apache-2.0 */
/* Euler's method on latents of the form x0 + sigma · noise (docs/reference.md 4.4). */
#include "samplers/schedule.h"

#include <math.h>

void smalti_fill_euler(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	double top = schedule->sigma[0];
	sampler->initial_sigma =
	    schedule->config->spacing == SMALTI_SPACING_LEADING ? sqrt(top * top + 1) : top;
	for (int64_t i = 0; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = &sampler->step[i];
		struct smalti_point point = smalti_point_of_ratio(schedule->sigma[i]);
		smalti_predict_x0(step, schedule->config->prediction, point);
		step->input_scale = point.alpha;
		step->x0.x *= point.alpha;
		step->next.x = schedule->sigma[i + 1] / schedule->sigma[i];
		step->next.m = 1 - step->next.x;
	}
}
