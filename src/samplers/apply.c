/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/sampler.h"

#include <math.h>

#define DEVICE static inline
#include "samplers/element.h"

void smalti_sampler_apply(const struct smalti_sampler_step *step, int64_t count, const float *output,
			  const float *noise, float *x, float *history)
{
	const size_t kept = history ? (size_t)step->history : 0;
	for (int64_t k = 0; k < count; k++) {
		float last[SMALTI_SAMPLER_HISTORY] = {0};
		if (kept)
			memcpy(last, history + k * step->history, kept * sizeof(*last));
		x[k] = smalti_sampler_move(step, x[k], output[k], noise ? noise[k] : 0, last);
		if (kept)
			memcpy(history + k * step->history, last, kept * sizeof(*last));
	}
}
