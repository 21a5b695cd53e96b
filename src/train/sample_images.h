/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* Sample images, made while a run trains: RUN/samples/step-N/K.png of prompt K, from 1, with the weights
 * of the checkpoint RUN/step-N, or their average. The transformer is read from there, by a model that is
 * opened for these images and closed behind them; so they are those of smalti generate. */
struct smalti_sample_images;

/* Has the prompts encoded, by the text encoder that is open for that alone, and looks whether an image can be
 * made beside the trainer. `step`: of the last checkpoint. Close it before the trainer. */
struct smalti_sample_images *smalti_sample_images_open(const struct smalti_trainer *trainer, int64_t step,
						       struct smalti_error *error);
void smalti_sample_images_close(struct smalti_sample_images *images);

/* Whether all images of the step are there. */
bool smalti_sample_images_made(const struct smalti_train_options *options, int64_t step);
/* Between two steps, with the checkpoint of that step; images that are there are replaced. */
int smalti_sample_images_make(const struct smalti_sample_images *images, int64_t step,
			      struct smalti_error *error);
