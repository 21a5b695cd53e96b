/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of noise levels (docs/reference.md 4.5). */
#include "samplers/schedule.h"

#include <math.h>

double smalti_linspace(double from, double to, int64_t count, int64_t index)
{
	if (count > 1 && index == count - 1)
		return to;
	return count == 1 ? from : from + (double)index * ((to - from) / (double)(count - 1));
}

/* Computes the incomplete beta function of x in [0, 0.5] and two equal parameters, times their complete one,
 * by its power series. */
static double incomplete_beta(double x, double parameter)
{
	const double small = 1e-18;
	double term = pow(x, parameter), sum = 0;
	for (int n = 0; term > small * sum; n++) {
		sum += term / (parameter + n);
		term *= x * (n + 1 - parameter) / (n + 1);
	}
	return sum;
}

/* Returns the place below which lies that part of the symmetric beta distribution. */
static double beta_quantile(double part)
{
	const double parameter = 0.6, half = incomplete_beta(0.5, parameter);
	const double wanted = 2 * fmin(part, 1 - part) * half;
	double low = 0, high = 0.5;
	for (int bit = 0; bit < 64; bit++) {
		const double middle = 0.5 * (low + high);
		if (incomplete_beta(middle, parameter) < wanted)
			low = middle;
		else
			high = middle;
	}
	return part <= 0.5 ? low : 1 - low;
}

double smalti_flow_sigma(const struct smalti_scheduler_config *config, double sigma)
{
	return config->flow_shift * sigma / (1 + (config->flow_shift - 1) * sigma);
}

double smalti_sigma_on_curve(const struct smalti_scheduler_config *config, int64_t i, int64_t count,
			     double first, double last)
{
	const double rho = 7, place = smalti_linspace(0, 1, count, i);
	switch (config->sigmas) {
	case SMALTI_SIGMAS_KARRAS: {
		const double top = pow(first, 1 / rho), bottom = pow(last, 1 / rho);
		return pow(top + place * (bottom - top), rho);
	}
	case SMALTI_SIGMAS_EXPONENTIAL:
	case SMALTI_SIGMAS_LU:
		return exp(smalti_linspace(log(first), log(last), count, i));
	case SMALTI_SIGMAS_BETA:
		return last + beta_quantile(1 - place) * (first - last);
	case SMALTI_SIGMAS_FLOW:
		return smalti_flow_sigma(config, smalti_linspace(first, last, count, i));
	case SMALTI_SIGMAS_TRAINED:
		break;
	}
	return first;
}
