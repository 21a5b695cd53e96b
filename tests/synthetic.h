/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "checkpoint/inventory.h"

/* Make checkpoints without trained weights, for a configuration of any size: every tensor of such a component
 * (graphs/tensors.h), filled by the rule of docs/reference.md 9 with its amplitude A: A·sin(0.37·i + 1.3·k)
 * for element i of tensor k in bytewise order of the names, plus 1 in norms. The file is in test_scratch();
 * NULL after a failed check. */
/* Makes one of these tensors; frees the inventory. */
struct smalti_checkpoint *synthetic_checkpoint(struct smalti_inventory *inventory, double amplitude);
struct smalti_checkpoint *synthetic_transformer(const struct smalti_transformer_config *config,
						double amplitude);
struct smalti_checkpoint *synthetic_vae(const struct smalti_vae_config *config, double amplitude);
struct smalti_checkpoint *synthetic_t5(const struct smalti_t5_config *config, double amplitude);
