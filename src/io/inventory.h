/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IO_INVENTORY_H
#define SMALTI_IO_INVENTORY_H

#include "io/config.h"
#include "io/safetensors.h"

/* Every tensor of a component (specification 1.4, 1.6, Appendix A) of any configuration: name, shape, dtype
 * and bytes in bytewise order of the names; data is NULL. The VAE's is of its encoder and decoder. */
struct smalti_inventory {
	struct smalti_tensor_view *tensors; /* names belong to the inventory */
	int count, capacity;
};

/* SMALTI_EINVAL when a tensor is too large for 64 bits. */
int smalti_inventory_t5(struct smalti_inventory *inventory, const struct smalti_t5_config *config,
			enum smalti_dtype dtype, struct smalti_error *error);
int smalti_inventory_transformer(struct smalti_inventory *inventory,
				 const struct smalti_transformer_config *config, enum smalti_dtype dtype,
				 struct smalti_error *error);
int smalti_inventory_vae(struct smalti_inventory *inventory, const struct smalti_vae_config *config,
			 enum smalti_dtype dtype, struct smalti_error *error);
void smalti_inventory_free(struct smalti_inventory *inventory);

/* Whether a tensor of that name scales what a normalisation gives: 1 is its neutral value. */
bool smalti_is_norm_weight(const char *name);

#endif
