/* SPDX-License-Identifier: Apache-2.0 */
/* DDIM, with a share eta of added noise (docs/reference.md 4.4). */
#include "samplers/schedule.h"

#include <math.h>

/* Adds `weight` times the noise in x, as the model sees it, to the terms. */
static void add_noise_direction(struct smalti_sampler_step *step, enum smalti_prediction prediction,
				struct smalti_point point, double weight)
{
	struct smalti_sampler_step noise = {0};
	smalti_predict_noise(&noise, prediction, point);
	step->next.output += weight * noise.prediction.output;
	step->next.x += weight * noise.prediction.x;
}

/* Returns the deviation of the noise that is added between two levels. */
static double deviation(double eta, struct smalti_point s, struct smalti_point t)
{
	const double ratio = s.alpha / t.alpha;
	return eta * t.sigma / s.sigma * sqrt(fmax(1 - ratio * ratio, 0));
}

void smalti_fill_ddim(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const struct smalti_scheduler_config *config = schedule->config;
	const struct smalti_train_sigmas *train = schedule->train;
	/* With other spacings than leading, this misses the next step's timestep, as diffusers does. */
	int64_t stride = train->count / schedule->steps;
	for (int64_t i = schedule->first; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = smalti_row(schedule, sampler, i);
		int64_t now = (int64_t)schedule->timestep[i], then = now - stride;
		double final_alpha_bar = config->set_alpha_to_one ? 1 : train->alpha_bar[0];
		struct smalti_point s = smalti_point_of_alpha_bar(train->alpha_bar[now]);
		struct smalti_point t =
		    smalti_point_of_alpha_bar(then >= 0 ? train->alpha_bar[then] : final_alpha_bar);
		const double added = deviation(config->eta, s, t);
		smalti_predict_x0(step, config->prediction, s);
		step->next.m = t.alpha;
		step->next.noise = added;
		step->draws_noise = config->eta > 0;
		add_noise_direction(step, config->prediction, s,
				    sqrt(fmax(t.sigma * t.sigma - added * added, 0)));
	}
}
