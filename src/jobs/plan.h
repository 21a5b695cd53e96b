/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/model.h"
#include "jobs/plan_image.h"
#include "jobs/step_cache.h"
#include "samplers/sampler.h"
#include "smalti/generate.h"

#include <stdatomic.h>

/* The defaults of a request: tasks of a few milliseconds at the full model's width, enough for many workers;
 * on GPUs, which share the tokens, tasks that are worth their launches. */
enum { SMALTI_TILE_TOKENS = 256, SMALTI_GPU_TILE_TOKENS = 4096, SMALTI_TILE_ROWS = 8 };
/* Returns the default for a session (NULL: on CPUs) with these --shares (NULL: none). Devices that do
 * everything take as many tokens as they have memory for: attention over one band of keys is the fastest. */
int64_t smalti_tile_tokens(const struct smalti_session *session, const struct smalti_denoiser *denoiser,
			   const char *shares);

/* Active images share the plan that they were submitted with. */
struct smalti_plan {
	atomic_int users; /* the last user frees it */
	const struct smalti_model *model;
	struct smalti_request request; /* spelled out; its strings are the plan's own */
	char *prompt, *negative_prompt, *share_text, *strategy_text, *step_cache_text;
	struct smalti_variant *variant;      /* with the request's adapters; NULL: it has none */
	int64_t made_width, made_height;     /* size that is generated, before cropping or resizing */
	int64_t latent_width, latent_height; /* as computed */
	bool guided;
	struct smalti_sampler *sampler; /* owned */
	struct smalti_strategy strategy;
	struct smalti_step_cache_rule step_cache;
	struct smalti_step_cache_table *step_table; /* of a bound; NULL: none */
	char *step_cache_named;                     /* the request's, with the table */
	struct smalti_vae_plan decoding;
	struct smalti_plan_image *image; /* to begin with; NULL: none */
	int64_t bytes;                   /* held at most by one image, besides weights and captions */
};

/* Returns the transformer that makes the images. */
struct smalti_denoiser *smalti_plan_denoiser(const struct smalti_plan *plan);
/* Returns a digest of everything that an image's tasks depend on and the request does not say. */
uint64_t smalti_plan_digest(const struct smalti_plan *plan);
/* Adds a user. */
struct smalti_plan *smalti_plan_share(struct smalti_plan *plan);

/* Returns the bytes of the session's memory that are left beside the weights and the program. */
int64_t smalti_memory_for_images(const struct smalti_model *model);
/* Refuses, with SMALTI_ENOMEM, an image that needs more, unless the session has scratch. */
int smalti_plan_check_memory(const struct smalti_plan *plan, struct smalti_error *error);
