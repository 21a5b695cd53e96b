/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/groupnorm.h"

#include <math.h>

void smalti_moments_merge(int64_t groups, const struct smalti_moments *from, struct smalti_moments *into)
{
	for (int64_t group = 0; group < groups; group++) {
		const struct smalti_moments b = from[group];
		struct smalti_moments *a = &into[group];
		if (a->count == 0 || b.count == 0) {
			*a = a->count == 0 ? b : *a;
			continue;
		}
		double count = a->count + b.count;
		double delta = b.mean - a->mean;
		a->m2 += b.m2 + delta * delta * (a->count * b.count / count);
		a->mean += delta * (b.count / count);
		a->count = count;
	}
}

void smalti_groupnorm_coefficients(int64_t channels, int64_t groups, const struct smalti_moments *moments,
				   double epsilon, const float *gamma, const float *beta, float *a, float *b)
{
	for (int64_t channel = 0; channel < channels; channel++) {
		const struct smalti_moments *group = &moments[channel / (channels / groups)];
		double factor = gamma[channel] / sqrt(group->m2 / group->count + epsilon);
		a[channel] = (float)factor;
		b[channel] = (float)(beta[channel] - group->mean * factor);
	}
}
