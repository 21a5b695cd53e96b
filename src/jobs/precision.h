/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "checkpoint/config.h"
#include "rt/session.h"
#include "smalti/model.h"

/* By enum smalti_precision: "f32", …, ended by NULL. */
extern const char *const smalti_precisions[];

/* Has the workers of a session (NULL: CPUs without one) compute in it. -1 with SMALTI_EINVAL for a number
 * that is no precision, or that other models of the session rule out; SMALTI_EUNSUPPORTED for one that no
 * worker has. */
int smalti_precision_choose(enum smalti_precision precision, struct smalti_session *session,
			    struct smalti_error *error);

/* What the operands of products are rounded to; those of a VAE, whose maps may have numbers beyond f16. */
enum smalti_dtype smalti_precision_dtype(enum smalti_precision precision);
enum smalti_dtype smalti_precision_vae_dtype(enum smalti_precision precision,
					     const struct smalti_vae_config *config);

/* -1 where some of the values that a model made with such operands are not finite: by damaged weights, or by
 * numbers that the dtype has not. */
int smalti_precision_check_made(int64_t count, const float *values, const char *maker,
				enum smalti_dtype compute, struct smalti_error *error);
