/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule.h"

#include "base/base.h"

#include <math.h>

double smalti_base_rate(double rate, enum smalti_rate_rule rule, int64_t batch)
{
	const double ratio = (double)batch / 256; /* 256: the batch that rates are tuned for */
	switch (rule) {
	case SMALTI_RATE_SQRT:
		return rate * sqrt(ratio);
	case SMALTI_RATE_LINEAR:
		return rate * ratio;
	default:
		return rate;
	}
}

double smalti_schedule_factor(const struct smalti_rate_schedule *schedule, int64_t steps)
{
	if (steps < schedule->warmup)
		return (double)steps / (double)schedule->warmup;
	if (schedule->kind == SMALTI_SCHEDULE_CONSTANT)
		return 1;
	const double length = (double)smalti_max(1, schedule->total - schedule->warmup);
	return fmax(0, 0.5 * (1 + cos(M_PI * (double)(steps - schedule->warmup) / length)));
}

double smalti_average_decay(double max, int64_t update)
{
	return update < 2 ? 0 : fmin(max, (double)update / (double)(update + 9));
}

double smalti_clip_factor(double norm, double max)
{
	return max > 0 ? fmin(1, max / (norm + 1e-6)) : 1;
}

int smalti_loss_scale_update(struct smalti_loss_scale *scale, const struct smalti_loss_scale_options *options,
			     bool finite, struct smalti_error *error)
{
	enum { BAD_MAX = 50 };
	if (!finite) {
		scale->scale *= options->backoff;
		scale->good = 0;
		if (++scale->bad < BAD_MAX && scale->scale >= 0x1p-14)
			return 0;
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "the gradient was not finite in %" PRId64
				   " steps in a row, at last with a loss scale "
				   "of %g; train in bf16 or f32, or with a lower rate",
				   scale->bad, scale->scale);
	}
	scale->bad = 0;
	if (++scale->good < options->interval)
		return 0;
	scale->good = 0;
	if (isfinite(scale->scale * options->growth))
		scale->scale *= options->growth;
	return 0;
}
