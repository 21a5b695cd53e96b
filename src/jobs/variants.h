/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/adapter_set.h"
#include "graphs/denoiser.h"
#include "jobs/unused.h"

/* The transformer with the adapters of single requests, which are not merged: one base serves them all. Those
 * that were used lately are kept. */
struct smalti_model;
struct smalti_variants;

struct smalti_variant {
	char *lora; /* the request's text */
	struct smalti_adapter_set *adapters;
	struct smalti_task_group *task_group; /* of the tasks that make its weights; texts depend on it */
	struct smalti_denoiser *denoiser;
	char digest[SMALTI_DIGEST_LENGTH + 1]; /* of the model with these adapters */
	int64_t bytes;
	int64_t users, last_use;
	struct smalti_variant *next;
};

struct smalti_variants *smalti_variants_new(struct smalti_error *error);
/* Frees them, after the last task that reads one. NULL is allowed. */
void smalti_variants_free(struct smalti_variants *variants);

/* Finds, or reads and makes, the variant that a request's text names. Give it back. NULL with an error. Any
 * thread may call it. */
struct smalti_variant *smalti_variant_get(const struct smalti_model *model, const char *lora,
					  struct smalti_error *error);
/* Takes one more use of a variant that is in use. */
struct smalti_variant *smalti_variant_share(const struct smalti_model *model, struct smalti_variant *variant);
/* Gives a use back, after the last task that reads it has ended. NULL is allowed. */
void smalti_variant_put(const struct smalti_model *model, struct smalti_variant *variant);
/* Returns the bytes that all variants hold. */
int64_t smalti_variants_bytes(const struct smalti_model *model);
