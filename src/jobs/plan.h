/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_PLAN_H
#define SMALTI_JOBS_PLAN_H

#include "jobs/model.h"
#include "samplers/sampler.h"
#include "smalti/generate.h"

/* Unless a request says otherwise: tasks of a few milliseconds at the full model's width, and enough of them
 * for many workers. */
enum { SMALTI_TILE_TOKENS = 256, SMALTI_TILE_ROWS = 8 };

/* A request resolved against a model: everything that fixes the arithmetic of its pictures. */
struct smalti_plan {
	int64_t width, height;               /* of the picture, as it is kept */
	int64_t made_width, made_height;     /* that it is cut from; another size where it is resized */
	int64_t latent_width, latent_height; /* as computed */
	int64_t tile_tokens, tile_rows;
	bool guided;
	struct smalti_sampler *sampler; /* owned */
	struct smalti_vae_plan decoding;
	int64_t bytes; /* held at most by one picture, besides weights and captions */
};

/* Checks every field of the request. */
int smalti_plan_make(struct smalti_plan *plan, const struct smalti_model *model,
		     const struct smalti_request *request, struct smalti_error *error);
void smalti_plan_free(struct smalti_plan *plan);

/* What of the memory that the session may hold is left beside the weights and the program. */
int64_t smalti_memory_for_pictures(const struct smalti_model *model);

#endif
