/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"
#include "smalti/model.h"

/* Reads the texts PATH[:WEIGHT] of --lora into the model's options. Free it in any case. */
int smalti_lora_parse(const struct smalti_string_list *texts, struct smalti_model_options *model,
		      struct smalti_error *error);
void smalti_lora_free(struct smalti_model_options *model);
