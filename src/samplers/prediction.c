/* SPDX-License-Identifier: Apache-2.0 */
/* Clean latents and noise: from a model's output, and in latents (docs/reference.md 4.5 and 4.6). */
#include "samplers/schedule.h"

void smalti_predict_x0(struct smalti_sampler_step *step, enum smalti_prediction prediction,
		       struct smalti_point point)
{
	switch (prediction) {
	case SMALTI_PREDICTS_EPSILON:
		step->prediction.x = 1 / point.alpha;
		step->prediction.output = -point.sigma / point.alpha;
		break;
	case SMALTI_PREDICTS_V:
		step->prediction.x = point.alpha;
		step->prediction.output = -point.sigma;
		break;
	case SMALTI_PREDICTS_SAMPLE:
		step->prediction.output = 1;
		break;
	case SMALTI_PREDICTS_FLOW:
		step->prediction.x = 1;
		step->prediction.output = -point.sigma;
		break;
	}
}

void smalti_predict_noise(struct smalti_sampler_step *step, enum smalti_prediction prediction,
			  struct smalti_point point)
{
	switch (prediction) {
	case SMALTI_PREDICTS_EPSILON:
		step->prediction.output = 1;
		break;
	case SMALTI_PREDICTS_V:
		step->prediction.x = point.sigma;
		step->prediction.output = point.alpha;
		break;
	case SMALTI_PREDICTS_SAMPLE:
		step->prediction.x = 1 / point.sigma;
		step->prediction.output = -point.alpha / point.sigma;
		break;
	case SMALTI_PREDICTS_FLOW:
		step->prediction.x = 1;
		step->prediction.output = point.alpha;
		break;
	}
}

struct smalti_sampler_level smalti_level_of_point(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_point point = smalti_schedule_point(schedule, i);
	return (struct smalti_sampler_level){point.alpha, point.sigma};
}

struct smalti_sampler_level smalti_level_of_sigma(const struct smalti_schedule *schedule, int64_t i)
{
	return (struct smalti_sampler_level){1, schedule->sigma[i]};
}

struct smalti_sampler_level smalti_level_of_timestep(const struct smalti_schedule *schedule, int64_t i)
{
	const struct smalti_point point =
	    smalti_point_of_alpha_bar(schedule->train->alpha_bar[(int64_t)schedule->timestep[i]]);
	return (struct smalti_sampler_level){point.alpha, point.sigma};
}
