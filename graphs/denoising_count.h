/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "rt/task_transfers.h"

/* Counts what a denoising needs of a machine: its graph is inserted into a session that counts
 * (rt/counting.h). */

/* A denoising that will be spread over places. */
struct smalti_denoising {
	const struct smalti_denoiser *denoiser;
	int64_t tokens, columns, band_tokens; /* of the image, of a row of it, of a task at most */
	int64_t prompt_tokens[SMALTI_DENOISER_MAX_BRANCHES];
	int branches;
};

/* The share of one place. */
struct smalti_load {
	double transfers[SMALTI_TRANSFER_KINDS]; /* bytes that the place receives in the last pass */
	double flops;                            /* of a pass */
	double attention;                        /* the part of them that attends to other places' keys */
	double blocks;                           /* that a pass computes there, of all branches */
	double operations;                       /* of a pass: the tasks, if none are fused */
	double weights;                          /* bytes, in the form that the place uses */
	double activations;                      /* bytes of its own results, when it holds most */
	double buffers;                          /* bytes of other places' results, at that time */
};

/* Counts the load of each of the `places`, which are main memory and devices, or ranks. If a strategy places
 * nothing, each gets the load of all tasks. -1 with an error. */
int smalti_denoising_loads(const struct smalti_denoising *denoising, const struct smalti_strategy *strategy,
			   bool devices, int places, struct smalti_load *loads, struct smalti_error *error);
