/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "samplers/config.h"
#include "samplers/step.h"

/* A diffusion scheduler (docs/reference.md 4) as a table. A step is a linear combination of a few arrays of
 * the latents' size, so one element-wise kernel runs all schedulers. They differ only in how they fill the
 * table, once, in double. */

struct smalti_sampler {
	double initial_sigma;              /* the first latents are normal noise times this, */
	struct smalti_sampler_level start; /* or, of image to image, an image's, with noise */
	int predictions,
	    history;   /* of every step: arrays of the latents' size kept between steps, besides x */
	int64_t steps; /* calls of the model: Heun's steps are two calls, but the last */
	struct smalti_sampler_step step[];
};

/* Makes the table for `steps` steps of the scheduler in `config`, which must be as checkpoint/config.h reads
 * it. NULL with an error if it cannot do that many, or if the betas are not usable. Deviations from
 * diffusers: x0 is clamped only if the file says so (diffusers' default for DDIM, true, is wrong for
 * latents); a duplicate timestep, NaN in diffusers, is a step of no length. Free with free(). */
struct smalti_sampler *smalti_sampler_new(const struct smalti_scheduler_config *config, int64_t steps,
					  struct smalti_error *error);

/* Runs one step in place on `count` elements, any contiguous part of the latents. `output` is the model's,
 * `noise` (NULL unless draws_noise) the same part of this step's draw. `history` (NULL if there is none) is
 * [count][history], initially anything, and only this function uses it. Arithmetic is in double, rounded to
 * f32 once per element and array: the result does not depend on the cut. */
void smalti_sampler_apply(const struct smalti_sampler_step *step, int64_t count, const float *output,
			  const float *noise, float *x, float *history);

/* A user's name for a scheduler and some of its settings, for example "dpm++ karras". */
struct smalti_sampler_name {
	const char *name;
	enum smalti_scheduler scheduler;
	enum smalti_sigmas sigmas;       /* SMALTI_SIGMAS_TRAINED: as in the model's file */
	enum smalti_algorithm algorithm; /* of the DPM-Solver */
	int64_t order;                   /* of the DPM-Solver; 0: as in the file */
	int64_t steps;                   /* the only number of them; 0: any */
};

/* Returns the names for help texts, in order; NULL past the last. */
const struct smalti_sampler_name *smalti_sampler_name_at(int index);
/* Returns NULL with an error that lists the names. */
const struct smalti_sampler_name *smalti_sampler_name_find(const char *name, struct smalti_error *error);
/* Sets what the name says in a configuration that was read for its scheduler (checkpoint/config.h). */
void smalti_sampler_name_set(const struct smalti_sampler_name *name, struct smalti_scheduler_config *config);
/* Returns the name of a configuration; NULL: it has none. */
const char *smalti_sampler_name_of(const struct smalti_scheduler_config *config);
