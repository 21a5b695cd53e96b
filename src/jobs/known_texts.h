/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/text_encoder.h"
#include "smalti/generate.h"

/* Texts whose hidden states are known. They stay as long as encoders of them do. */
struct smalti_known_texts {
	const struct smalti_text_states *states;
	int64_t count;
};

/* In the place of the encoder that has made them: gives the hidden states of these texts, and fails the task
 * group with any other. No weight of the checkpoint is read. */
struct smalti_text_encoder *smalti_known_texts_new(const struct smalti_known_texts *texts,
						   const struct smalti_t5_config *config,
						   const struct smalti_checkpoint *checkpoint,
						   struct smalti_error *error);
