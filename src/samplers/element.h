/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A step at one element (step.h), for CPUs and for device kernels, which have the same arithmetic. Who
 * includes this defines DEVICE. */
DEVICE double smalti_sampler_term(double coefficient, double value)
{
	return coefficient == 0 ? 0 : coefficient * value;
}

DEVICE double smalti_sampler_sum(const struct smalti_sampler_terms *terms, int predictions, double x,
				 double m, double output, double noise, const float *last)
{
	double sum = smalti_sampler_term(terms->x, x) +
		     smalti_sampler_term(terms->last_x, last[predictions]) + smalti_sampler_term(terms->m, m);
	for (int k = 0; k < predictions; k++)
		sum += smalti_sampler_term(terms->last_m[k], last[k]);
	return sum + smalti_sampler_term(terms->output, output) + smalti_sampler_term(terms->noise, noise) +
	       smalti_sampler_term(terms->last_noise, last[predictions + 1]);
}

/* Returns the next x; `last` is the element's history, with room for SMALTI_SAMPLER_HISTORY values. */
DEVICE float smalti_sampler_move(const struct smalti_sampler_step *step, float x, float output, float noise,
				 float *last)
{
	double m =
	    smalti_sampler_term(step->prediction.x, x) + smalti_sampler_term(step->prediction.output, output);
	if (step->clip != 0 && fabs(m) > step->clip && fabs(m) < INFINITY)
		m = copysign(step->clip, m);
	const double now =
	    step->corrects ? smalti_sampler_sum(&step->correct, step->predictions, 0, m, 0, 0, last) : x;
	const double after = smalti_sampler_sum(&step->next, step->predictions, now, m, output, noise, last);
	for (int k = step->predictions - 1; k > 0; k--)
		last[k] = last[k - 1];
	if (step->predictions > 0)
		last[0] = (float)m;
	last[step->predictions] = (float)now;
	last[step->predictions + 1] = noise;
	return (float)after;
}
