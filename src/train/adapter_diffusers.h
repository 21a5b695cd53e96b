/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Writes a file of weights in peft's layout, with its configuration as text, once more as diffusers' LoRA
 * files are (pytorch_lora_weights.safetensors): the names begin with "transformer.", and the metadata have
 * the configuration. */
int smalti_adapter_write_diffusers(const char *weights, const char *config, const char *path,
				   struct smalti_error *error);
