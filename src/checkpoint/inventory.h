/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* A list of tensors: name, shape, dtype and bytes; data is NULL. Initialise with zeros. */
struct smalti_inventory {
	struct smalti_tensor_view *tensors; /* names belong to the inventory */
	int count;
};

/* Returns the new tensor, valid until the next call; NULL: SMALTI_EINVAL if it is too large for 64 bits. */
const struct smalti_tensor_view *smalti_inventory_add(struct smalti_inventory *inventory, const char *name,
						      enum smalti_dtype dtype, int rank, const int64_t *shape,
						      struct smalti_error *error);
/* Sorts the tensors by the bytes of their names. */
void smalti_inventory_sort(struct smalti_inventory *inventory);
void smalti_inventory_free(struct smalti_inventory *inventory);
