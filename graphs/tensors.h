/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_TENSORS_H
#define SMALTI_GRAPHS_TENSORS_H

#include "checkpoint/config.h"
#include "checkpoint/inventory.h"

/* Every tensor of a component of any configuration, in bytewise order of the names: what its loader asks a
 * checkpoint for. The VAE's is of its encoder and decoder. SMALTI_EINVAL when a tensor is too large for 64
 * bits. Free the inventory, which is empty after a failure. @{ */
int smalti_t5_tensors(struct smalti_inventory *inventory, const struct smalti_t5_config *config,
		      enum smalti_dtype dtype, struct smalti_error *error);
int smalti_transformer_tensors(struct smalti_inventory *inventory,
			       const struct smalti_transformer_config *config, enum smalti_dtype dtype,
			       struct smalti_error *error);
int smalti_vae_tensors(struct smalti_inventory *inventory, const struct smalti_vae_config *config,
		       enum smalti_dtype dtype, struct smalti_error *error);
/* @} */

#endif
