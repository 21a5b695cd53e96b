/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* A list of tensors: name, shape, dtype and bytes; data is NULL. Begin with zeros. */
struct smalti_inventory {
	struct smalti_tensor_view *tensors; /* names belong to the inventory */
	int count;
};

/* The new tensor, until the next is added; NULL: SMALTI_EINVAL when it is too large for 64 bits. */
const struct smalti_tensor_view *smalti_inventory_add(struct smalti_inventory *inventory, const char *name,
						      enum smalti_dtype dtype, int rank, const int64_t *shape,
						      struct smalti_error *error);
/* In bytewise order of the names. */
void smalti_inventory_sort(struct smalti_inventory *inventory);
void smalti_inventory_free(struct smalti_inventory *inventory);
