/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "cli/simulate.h"
#include "rt/simulation.h"
#include "simulation/machine.h"

/* A running case, which is one simulation. */
struct smalti_case {
	const struct smalti_simulate_options *options;
	struct smalti_simulated_machine machine;
	char *directory; /* the model's; NULL: the embedded one */
	struct smalti_session *session;
};

/* Simulates and prints a line of JSON. */
int smalti_case_run(const struct smalti_simulate_options *options, struct smalti_error *error);

/* Simulate on the open machine, and print: images, steps of training, or the extraction of features
 * (images.c, training.c, extraction.c). @{ */
int smalti_case_images(struct smalti_case *c, struct smalti_error *error);
int smalti_case_training(struct smalti_case *c, struct smalti_error *error);
int smalti_case_extraction(struct smalti_case *c, struct smalti_error *error);
/* @} */

/* Sets the precision of what follows; `convolutions` is that of the VAE. */
int smalti_case_precision(struct smalti_case *c, enum smalti_dtype convolutions, struct smalti_error *error);
/* Tells the operations of a transformer, over the width w: for each token of a block, q, k, v and their
 * result for the image, two of them for the caption, and the MLP are products of 28 w² operations; attention
 * to all others is 4 w each. */
void smalti_case_expect(const struct smalti_case *c, int64_t width, double tokens);

/* The outcome of a case, for its line. */
struct smalti_case_outcome {
	const char *strategy; /* NULL: none */
	const struct smalti_simulation *simulation;
	/* Seconds of training: its last step, the writing of a checkpoint and the reading of a batch, 0 where
	 * the machine has no storage; and the checkpoint's bytes. @{ */
	double step, checkpoint, reading;
	int64_t checkpoint_bytes;
	/* @} */
};
/* Prints the line. */
int smalti_case_print(const struct smalti_case *c, const struct smalti_case_outcome *outcome,
		      struct smalti_error *error);
