/* SPDX-License-Identifier: Apache-2.0 */
/* Clean latents and noise from a model's output (docs/reference.md 4.5). */
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
