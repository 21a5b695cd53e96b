/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/train.h"

/* Numbers of a step, in double (docs/training.md). */

/* Returns the base rate of a global batch. */
double smalti_base_rate(double rate, enum smalti_rate_rule rule, int64_t batch);

struct smalti_rate_schedule {
	enum smalti_schedule_kind kind;
	int64_t warmup, total; /* steps */
};

/* Returns the base rate's factor after `steps` steps. */
double smalti_schedule_factor(const struct smalti_rate_schedule *schedule, int64_t steps);

/* Returns the decay of the weights' average in its update number `update`, from 1 on. */
double smalti_average_decay(double max, int64_t update);

/* Returns the factor that clips a gradient of this norm to `max`; `max` 0: 1. */
double smalti_clip_factor(double norm, double max);

/* The loss's factor in f16, so that gradients are not too small for the type. */
struct smalti_loss_scale {
	double scale;
	int64_t good,
	    bad; /* consecutive steps since the scale changed, or since the last step of the other kind */
};

/* Updates the scale after a step whose gradient was finite or not. -1 with SMALTI_ECORRUPT if no scale would
 * help. */
int smalti_loss_scale_update(struct smalti_loss_scale *scale, const struct smalti_loss_scale_options *options,
			     bool finite, struct smalti_error *error);
