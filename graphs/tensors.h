/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/inventory.h"

/* The parts of a pipeline that have weights. */
enum smalti_component { SMALTI_TEXT_ENCODER, SMALTI_TRANSFORMER, SMALTI_VAE, SMALTI_COMPONENTS };

/* Lists every tensor of a component of any configuration (checkpoint/config.h), in bytewise order of the
 * names: what its loader asks a checkpoint for. The VAE's is of its encoder and decoder. SMALTI_EINVAL when a
 * tensor is too large for 64 bits. Free the inventory, which is empty after a failure. */
int smalti_component_tensors(struct smalti_inventory *inventory, enum smalti_component component,
			     const void *config, enum smalti_dtype dtype, struct smalti_error *error);
