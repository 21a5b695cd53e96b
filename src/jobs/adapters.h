/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/adapter_set.h"
#include "checkpoint/config.h"
#include "smalti/model.h"

/* Reads the adapters of a model of these configurations; NULL with an error. `transformer` NULL: there is
 * none, and its tensors are unknown. */
struct smalti_adapter_set *smalti_adapters_open(const struct smalti_lora *loras, int64_t count,
						const struct smalti_t5_config *text_encoder,
						const struct smalti_transformer_config *transformer,
						struct smalti_error *error);
/* Splits PATH[:WEIGHT], in place: what follows the last colon is a weight if it is a number. `what` begins a
 * message. */
int smalti_lora_read(char *text, const char *what, struct smalti_lora *lora, struct smalti_error *error);
/* Changes the digest of a model to that of the model with these adapters and weights. */
int smalti_adapters_digest(const struct smalti_adapter_set *adapters, char *digest,
			   struct smalti_error *error);
