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

/* What made values: a model with such operands, perhaps of latents that somebody gave. */
struct smalti_maker {
	const char *model;
	enum smalti_dtype compute;
	const float *latents; /* NULL: of noise, or of an image or text */
	int64_t latents_count;
};

/* -1 where some of the values are not finite: by damaged weights, by numbers that the dtype has not, or by
 * latents that are too large. */
int smalti_precision_check_made(int64_t count, const float *values, const struct smalti_maker *maker,
				struct smalti_error *error);
