/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/value.h"
#include "rt/grid.h"

/* A step cache (docs/step-cache.md) skips the blocks behind the first one in a call of the denoiser, and adds
 * instead what these added in an earlier call, if the first block's change is nearly that of then. A call is
 * a step of one branch. Over all tokens, z⁰ is the input of the first block, z¹ its output and z of the last
 * one; the change is z¹ − z⁰, the rest z − z¹.
 *
 * What is skipped is decided from values, so the insertion of a step waits for the first block. */
enum smalti_step_cache_kind {
	SMALTI_STEP_CACHE_NONE,
	/* Skips if mean|change − last change| ≤ threshold · mean|last change|; `last` is the last call in
	   full. */
	SMALTI_STEP_CACHE_FIRST_BLOCK,
	/* Skips if the output's error is, by a table, at most threshold · ‖last output‖. */
	SMALTI_STEP_CACHE_BOUND,
	/* Skips nothing, and measures the table. */
	SMALTI_STEP_CACHE_CALIBRATION
};

/* A row of a bound's table: number g − 1 is the largest error of the output, ‖guess − output‖, by the
 * change's ‖change − change of g steps before‖. 0: none is known. So a bound skips at most SMALTI_STEP_GAPS
 * steps in a row. */
typedef double smalti_step_ratios[SMALTI_STEP_GAPS];

struct smalti_step_cache_rule {
	enum smalti_step_cache_kind kind;
	double threshold;
	double factor;                    /* a bound is the table's times this */
	const smalti_step_ratios *ratios; /* of each step; of a bound */
	bool checks; /* also computes in full what is skipped, and measures the error of the output */
};

struct smalti_step_cache_arguments {
	struct smalti_step_cache_rule rule;
	const struct smalti_partition *bands; /* of the tokens; outlives the cache */
	int64_t steps, width;                 /* width: of the stream */
	int branches;
	/* A row of the output has `output` values; the first `noises` of every `channels` are compared. */
	int64_t output, channels, noises;
	/* Waits until the task group's tasks have ended; NULL: smalti_task_group_wait(). */
	void (*wait)(void *user);
	void *user;
};

struct smalti_step_cache;

/* Returns the most bytes that a cache holds. */
int64_t smalti_step_cache_bytes(enum smalti_step_cache_kind kind, int64_t tokens, int64_t width,
				int branches);

/* Makes a cache; NULL, with the task group broken, without memory. */
struct smalti_step_cache *smalti_step_cache_new(struct smalti_task_group *task_group,
						const struct smalti_step_cache_arguments *arguments);
/* Waits for what is still measured. */
void smalti_step_cache_settle(struct smalti_step_cache *cache);
/* Return what became of each call, [steps, branches], and the table [steps] that a calibration has measured.
 * They are the cache's. @{ */
const struct smalti_step_call *smalti_step_cache_calls(const struct smalti_step_cache *cache);
const smalti_step_ratios *smalti_step_cache_measured(const struct smalti_step_cache *cache);
/* @} */
/* Releases all. NULL is allowed. */
void smalti_step_cache_free(struct smalti_step_cache *cache);

/* A denoiser calls these in each step, for each branch, with the bands of its stream. */

/* Notes z⁰ of a branch. */
void smalti_step_cache_begin(struct smalti_step_cache *cache, int branch, const struct smalti_value *z);
/* Notes z¹ of all branches, waits for them, and decides which calls are skipped. */
void smalti_step_cache_decide(struct smalti_step_cache *cache, int64_t step, struct smalti_value *const *z);
/* Tell whether the call is skipped, and whether its blocks are computed: they are, too, if a skipped call is
 * checked. @{ */
bool smalti_step_cache_skips(const struct smalti_step_cache *cache, int branch);
bool smalti_step_cache_computes(const struct smalti_step_cache *cache, int branch);
/* @} */
/* Notes the stream behind the last block, and the denoiser's output, of a call whose blocks were computed. */
void smalti_step_cache_computed(struct smalti_step_cache *cache, int branch, const struct smalti_value *z,
				const struct smalti_grid *output);
/* Returns how many guesses of the stream behind the last block there are: one of a skipped call, more in a
 * calibration. */
int smalti_step_cache_guesses(const struct smalti_step_cache *cache, int branch);
/* Writes a guess over z, which is z¹ if the blocks were not computed. */
void smalti_step_cache_guess(struct smalti_step_cache *cache, int branch, int guess, struct smalti_value *z);
/* Notes the denoiser's output for a guess, and for what was computed. */
void smalti_step_cache_compare(struct smalti_step_cache *cache, int branch, int guess,
			       const struct smalti_grid *guessed, const struct smalti_grid *output);
/* Ends a call. */
void smalti_step_cache_end(struct smalti_step_cache *cache, int branch);
