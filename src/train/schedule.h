/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/train.h"

/* Numbers of a step, in double (docs/training.md). */

/* The base rate of a global batch. */
double smalti_base_rate(double rate, enum smalti_rate_rule rule, int64_t batch);

struct smalti_schedule {
	enum smalti_schedule_kind kind;
	int64_t warmup, total; /* steps */
};

/* Of the base rate, in the step after `steps` of the optimizer. */
double smalti_schedule_factor(const struct smalti_schedule *schedule, int64_t steps);

/* Of the average of weights, in its update number `update`, from 1 on. */
double smalti_average_decay(double most, int64_t update);

/* The gradient's norm is `norm`: what it is multiplied by; `most` 0: 1. */
double smalti_clip_factor(double norm, double most);

/* f16: what the loss is multiplied by, so that gradients are not too small for the type. */
struct smalti_loss_scale {
	double scale;
	int64_t good, bad; /* steps in a row, since the scale was changed or the last of the other kind */
};

/* Behind a step whose gradient was finite or not. -1 with SMALTI_ECORRUPT where no scale would help. */
int smalti_loss_scale_update(struct smalti_loss_scale *scale, const struct smalti_loss_scale_options *options,
			     bool finite, struct smalti_error *error);
