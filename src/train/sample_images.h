/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* Sample images of a run in training: RUN/samples/step-N/K.png of prompt K, from 1, with the weights of the
 * checkpoint RUN/step-N, or their average. A model opened for these images reads the transformer from there;
 * so they are those of smalti generate. Over the ranks of an MPI job all call these functions, and rank 0
 * makes the images. */
struct smalti_sample_images;

/* Encodes the prompts with the text encoder, which is open only then, and checks that an image can be made
 * beside the trainer. `step`: of the last checkpoint. Close it before the trainer. */
struct smalti_sample_images *smalti_sample_images_open(const struct smalti_trainer *trainer, int64_t step,
						       struct smalti_error *error);
void smalti_sample_images_close(struct smalti_sample_images *images);

/* Tells whether all images of the step exist. */
bool smalti_sample_images_made(const struct smalti_train_options *options, int64_t step);
/* Makes the images between two steps, with that step's checkpoint; existing ones are replaced. */
int smalti_sample_images_make(const struct smalti_sample_images *images, int64_t step,
			      struct smalti_error *error);
