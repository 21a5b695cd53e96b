/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "cli/progress.h"
#include "smalti/generate.h"
#include "text/prompts.h"

/* `smalti step-cache` measures a table of bounds, or what a step cache costs and brings. */

struct smalti_step_cache_options {
	const char *prompts, *output, *check;
	struct smalti_request request; /* of every prompt */
	struct smalti_string_list lora;
	struct smalti_model_options model;
	struct smalti_session_options session;
	int64_t images; /* at most */
	bool has_size, json, quiet;
};

/* One image under way. */
struct smalti_step_cache_image {
	struct smalti_step_cache_run *run;
	int64_t index;
	unsigned char *rgb; /* NULL: not wanted */
	float *latents;
	int64_t latent_count;
	struct smalti_step_call *calls; /* of a step cache */
	int64_t call_count;
};
void smalti_step_cache_image_free(struct smalti_step_cache_image *image);

/* The command under way. */
struct smalti_step_cache_run {
	const struct smalti_step_cache_options *options;
	struct smalti_model *model;
	struct smalti_batch *batch;
	char **texts; /* the prompts */
	int64_t count, done;
	int64_t width, height;
	struct smalti_progress progress;
	pthread_mutex_t mutex;              /* guards what follows */
	double (*ratios)[SMALTI_STEP_GAPS]; /* the largest so far; NULL: none was measured yet */
	int64_t steps;
	struct smalti_error failure; /* the first one */
};

enum { SMALTI_STEP_CACHE_TOGETHER = 16 }; /* images that are made at the same time */

/* Makes images first … first + count − 1, at the same time. The caller frees them in any case. */
int smalti_step_cache_make(struct smalti_step_cache_run *run, const char *rule, bool checks, bool decodes,
			   int64_t first, int64_t count, struct smalti_step_cache_image *images,
			   struct smalti_error *error);

/* Compares images with a step cache with those without, and prints the result. */
int smalti_step_cache_check(struct smalti_step_cache_run *run, struct smalti_error *error);
