/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/text_encoder.h"
#include "smalti/generate.h"

/* Texts whose hidden states are known. They stay as long as their encoders. */
struct smalti_known_texts {
	const struct smalti_text_states *states;
	int64_t count;
};

/* Replaces the encoder that has made them: returns the hidden states of these texts, and fails the task group
 * for others. It reads no weight of the checkpoint. */
struct smalti_text_encoder *smalti_known_texts_new(const struct smalti_known_texts *texts,
						   const struct smalti_t5_config *config,
						   const struct smalti_checkpoint *checkpoint,
						   struct smalti_error *error);
