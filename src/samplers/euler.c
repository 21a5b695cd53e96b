/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of Euler, with and without added noise, and of Heun, on latents of the form x0 + sigma · noise,
 * and, of flow, (1 - sigma) · x0 + sigma · noise (docs/reference.md 4.4 and 4.5). The same formulas move
 * both: from sigma to sigma', x becomes x + (sigma' - sigma) · (x - x0) / sigma. */
#include "samplers/schedule.h"

#include <math.h>

static void set_initial_sigma(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const double top = schedule->sigma[0];
	if (schedule->config->sigmas != SMALTI_SIGMAS_FLOW)
		sampler->initial_sigma =
		    schedule->config->spacing == SMALTI_SPACING_LEADING ? sqrt(top * top + 1) : top;
}

/* Sets the prediction at level i. Models of other than flow see x · alpha. */
static void predict(const struct smalti_schedule *schedule, int64_t i, struct smalti_sampler_step *step)
{
	const struct smalti_point point = smalti_schedule_point(schedule, i);
	smalti_predict_x0(step, schedule->config->prediction, point);
	if (schedule->config->sigmas == SMALTI_SIGMAS_FLOW)
		return;
	step->input_scale = point.alpha;
	step->prediction.x *= point.alpha;
}

/* Sets the step from level i to a level `sigma` without added noise. */
static void descend(const struct smalti_schedule *schedule, int64_t i, double sigma,
		    struct smalti_sampler_step *step)
{
	predict(schedule, i, step);
	step->next.x = sigma / schedule->sigma[i];
	step->next.m = 1 - step->next.x;
}

void smalti_fill_euler(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	set_initial_sigma(schedule, sampler);
	for (int64_t i = schedule->first; i < schedule->steps; i++)
		descend(schedule, i, schedule->sigma[i + 1], smalti_row(schedule, sampler, i));
}

void smalti_fill_euler_ancestral(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	set_initial_sigma(schedule, sampler);
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		const double from = schedule->sigma[i], to = schedule->sigma[i + 1];
		const double ratio = to / from, down = to * ratio;
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		descend(schedule, i, down, step);
		step->next.noise = to * sqrt(1 - ratio * ratio);
		step->draws_noise = true;
	}
}

/* Each step but the last calls the model twice: as Euler, and from there again, with the mean of both
 * slopes. */
void smalti_fill_heun(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	set_initial_sigma(schedule, sampler);
	sampler->predictions = 1;
	sampler->history = 2;
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		const double from = schedule->sigma[i], to = schedule->sigma[i + 1], half = 0.5 * (to - from);
		struct smalti_sampler_step *step = &sampler->step[2 * (i - schedule->first)],
					   *again = step + 1;
		descend(schedule, i, to, step);
		if (i == schedule->steps - 1)
			break;
		predict(schedule, i + 1, again);
		again->next = (struct smalti_sampler_terms){
		    .last_x = 1 + half / from, .last_m = {-half / from}, .x = half / to, .m = -half / to};
	}
}
