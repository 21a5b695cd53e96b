/* SPDX-License-Identifier: Apache-2.0 */
/* DDIM without added noise (eta 0), and the single step of distilled models (docs/reference.md 4.4). */
#include "samplers/schedule.h"

/* Adds `weight` times the noise in x, as the model sees it, to the terms. */
static void add_noise_direction(struct smalti_sampler_step *step, enum smalti_prediction prediction,
				struct smalti_point point, double weight)
{
	switch (prediction) {
	case SMALTI_PREDICTS_EPSILON:
		step->next.output += weight;
		break;
	case SMALTI_PREDICTS_V:
		step->next.output += weight * point.alpha;
		step->next.x += weight * point.sigma;
		break;
	case SMALTI_PREDICTS_SAMPLE:
		step->next.output -= weight * point.alpha / point.sigma;
		step->next.x += weight / point.sigma;
		break;
	}
}

void smalti_fill_ddim(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	const struct smalti_scheduler_config *config = schedule->config;
	const struct smalti_train_sigmas *train = schedule->train;
	/* With other spacings than leading, this misses the next step's timestep, as diffusers does. */
	int64_t stride = train->count / schedule->steps;
	for (int64_t i = 0; i < schedule->steps; i++) {
		struct smalti_sampler_step *step = &sampler->step[i];
		int64_t now = (int64_t)schedule->timestep[i], then = now - stride;
		double final_alpha_bar = config->set_alpha_to_one ? 1 : train->alpha_bar[0];
		struct smalti_point s = smalti_point_of_alpha_bar(train->alpha_bar[now]);
		struct smalti_point t =
		    smalti_point_of_alpha_bar(then >= 0 ? train->alpha_bar[then] : final_alpha_bar);
		smalti_predict_x0(step, config->prediction, s);
		step->next.m = t.alpha;
		add_noise_direction(step, config->prediction, s, t.sigma);
	}
}

/* Makes the result the prediction itself. */
void smalti_fill_dmd(const struct smalti_schedule *schedule, struct smalti_sampler *sampler)
{
	int64_t now = (int64_t)schedule->timestep[0];
	smalti_predict_x0(&sampler->step[0], schedule->config->prediction,
			  smalti_point_of_alpha_bar(schedule->train->alpha_bar[now]));
	sampler->step[0].next.m = 1;
}
