/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/contrast.h"
#include "retrieve/projections.h"
#include "train/optimizer.h"

/* Two linear maps and a temperature that are trained by the loss of kernels/contrast.h, as a graph of tasks.
 * A batch is cut into bands of rows. The bands' results are added in a tree, so that no bit depends on
 * workers or policy. */
enum { SMALTI_TEMPERATURE = SMALTI_KINDS, SMALTI_PROJECTION_TENSORS };

struct smalti_projection_trainer {
	struct smalti_task_group *task_group;
	int64_t dim, width[SMALTI_KINDS];
	struct smalti_parameter
	    list[SMALTI_PROJECTION_TENSORS];        /* weight of each kind, then the temperature */
	struct smalti_parameters decayed, other;    /* parts of the list */
	struct smalti_optimizer_options options[2]; /* of these two */
	struct smalti_optimizer *optimizer[2];
};

/* Inserts the first values. Close it in any case. */
int smalti_projection_trainer_open(struct smalti_projection_trainer *trainer, struct smalti_session *session,
				   int64_t dim, const int64_t width[SMALTI_KINDS], double weight_decay,
				   uint64_t seed, struct smalti_error *error);
void smalti_projection_trainer_close(struct smalti_projection_trainer *trainer);

/* Inserts update number `step`, from 1 on, by a batch of two rows or more: rows[batch], each a caption's
 * vector and an image's, are copied. `parts` gets the loss before it, and the loss's gradient by the
 * temperature, when the task group has ended. */
int smalti_projection_step(struct smalti_projection_trainer *trainer, const float *rows, int64_t batch,
			   int64_t step, double rate, struct smalti_contrast_parts *parts,
			   struct smalti_error *error);
