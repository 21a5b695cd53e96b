/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "rt/session.h"
#include "smalti/model.h"

/* The names by enum smalti_precision: "f32", …, ended by NULL. */
extern const char *const smalti_precisions[];
/* The names by enum smalti_text_encoder_precision. */
extern const char *const smalti_text_encoder_precisions[];

/* Sets how the text encoder in this checkpoint is held, before its weights are made. */
void smalti_text_encoder_choose(enum smalti_text_encoder_precision precision,
				struct smalti_checkpoint *checkpoint);

/* Returns the precision of what is not a product of integers: another one if those of the transformer's
 * blocks are. */
enum smalti_precision smalti_precision_of_rest(enum smalti_precision precision);

/* Tells whether products of the transformer's blocks are of integers. */
bool smalti_precision_is_w8a8(enum smalti_precision precision);

/* Checks that it is one of those up to `last`. */
int smalti_precision_check(enum smalti_precision precision, enum smalti_precision last,
			   struct smalti_error *error);

/* Makes the workers of a session (NULL: CPUs without one) compute in a precision. -1 with SMALTI_EINVAL for a
 * number that is no precision, or that other models of the session exclude; SMALTI_EUNSUPPORTED for one that
 * no worker has, and for w8a8 and w8a8-bf16, which are f32 and bf16 to workers. */
int smalti_precision_choose(enum smalti_precision precision, struct smalti_session *session,
			    struct smalti_error *error);

/* Returns the dtype of the operands of products. A VAE has its own, since its maps may have numbers beyond
 * f16. */
enum smalti_dtype smalti_precision_dtype(enum smalti_precision precision);
enum smalti_dtype smalti_precision_vae_dtype(enum smalti_precision precision,
					     const struct smalti_vae_config *config);

/* The maker of values: a model with such operands, perhaps from given latents. */
struct smalti_maker {
	const char *model;
	enum smalti_dtype compute;
	const float *latents; /* NULL: from noise, an image or a text */
	int64_t latents_count;
};

/* Checks values. -1 if some are not finite: because of damaged weights, numbers beyond the dtype, or latents
 * that are too large. */
int smalti_precision_check_made(int64_t count, const float *values, const struct smalti_maker *maker,
				struct smalti_error *error);
