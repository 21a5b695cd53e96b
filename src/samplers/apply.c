/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/sampler.h"

#include <math.h>

/* The history of each element. */
enum { LAST_M, LAST_X, LAST_NOISE };

/* Returns 0 for a coefficient of 0: the array may be absent or hold anything. */
static inline double term(double coefficient, const float *array, int64_t k)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	return coefficient == 0 ? 0 : coefficient * array[k];
}

void smalti_sampler_apply(const struct smalti_sampler_step *step, int64_t count, const float *output,
			  const float *noise, float *x, float *history)
{
	const struct smalti_sampler_terms *correct = &step->correct, *next = &step->next;
	for (int64_t k = 0; k < count; k++) {
		const int arrays = history ? step->history : 0;
		float *last = arrays ? history + k * arrays : NULL;
		double now = x[k];
		double m = term(step->x0.x, x, k) + term(step->x0.output, output, k);
		if (step->clip != 0 && fabs(m) > step->clip && fabs(m) < INFINITY)
			m = copysign(step->clip, m);
		if (step->corrects)
			now = term(correct->x, last, LAST_X) + correct->m * m +
			      term(correct->previous_m, last, LAST_M) +
			      term(correct->noise, last, LAST_NOISE);
		double from = next->x == 0 ? 0 : next->x * now;
		double after = from + next->m * m + term(next->previous_m, last, LAST_M) +
			       term(next->output, output, k) + term(next->noise, noise, k);
		if (arrays > LAST_M)
			last[LAST_M] = (float)m;
		if (arrays > LAST_X)
			last[LAST_X] = (float)now;
		if (arrays > LAST_NOISE)
			last[LAST_NOISE] = noise[k];
		x[k] = (float)after;
	}
}
