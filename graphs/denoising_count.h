/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "rt/moves.h"

/* What a denoising takes of a machine: its graph is inserted into a session that counts (rt/counting.h). */

/* A denoising that is to be spread. */
struct smalti_denoising {
	const struct smalti_denoiser *denoiser;
	int64_t tokens, columns, band_tokens; /* of the image, of a row of it, of a task at most */
	int64_t prompt_tokens[SMALTI_DENOISER_MAX_BRANCHES];
	int branches;
};

/* Holds what one place bears of it. */
struct smalti_load {
	double moves[SMALTI_MOVES]; /* bytes that come to it in the last pass */
	double flops;               /* of a pass */
	double attention;           /* those of them that attend to other places' keys */
	double blocks;              /* that a pass goes through there, of all branches */
	double operations;          /* of a pass: tasks, where none are joined */
	double weights;             /* bytes, in the form that the place has */
	double activations;         /* bytes of what it has made, where it holds most */
	double buffers;             /* bytes of what it has then of others */
};

/* Counts the load of each of the `places`, which are main memory and devices, or ranks; of a strategy that
 * places nothing all is the first one's. -1 with an error. */
int smalti_denoising_loads(const struct smalti_denoising *denoising, const struct smalti_strategy *strategy,
			   bool devices, int places, struct smalti_load *loads, struct smalti_error *error);
