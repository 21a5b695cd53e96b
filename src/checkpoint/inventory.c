/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/inventory.h"

const struct smalti_tensor_view *smalti_inventory_add(struct smalti_inventory *inventory, const char *name,
						      enum smalti_dtype dtype, int rank, const int64_t *shape,
						      struct smalti_error *error)
{
	if (smalti_grow(&inventory->tensors, inventory->count, sizeof(*inventory->tensors), error) < 0)
		return NULL;
	struct smalti_tensor_view *tensor = &inventory->tensors[inventory->count];
	*tensor = (struct smalti_tensor_view){
	    .dtype = dtype, .rank = rank, .bytes = smalti_dtype_bytes(dtype), .usable = true};
	for (int i = 0; i < rank; i++)
		tensor->shape[i] = shape[i];
	if (!smalti_multiply_extents(&tensor->bytes, shape, rank)) {
		smalti_fail(error, SMALTI_EINVAL, "tensor %s is too large", name);
		return NULL;
	}
	tensor->name = smalti_format(error, "%s", name);
	if (!tensor->name)
		return NULL;
	inventory->count++;
	return tensor;
}

void smalti_inventory_sort(struct smalti_inventory *inventory)
{
	if (inventory->count)
		qsort(inventory->tensors, (size_t)inventory->count, sizeof(*inventory->tensors),
		      smalti_by_name);
}

void smalti_inventory_free(struct smalti_inventory *inventory)
{
	for (int i = 0; i < inventory->count; i++)
		free((void *)inventory->tensors[i].name);
	free(inventory->tensors);
	*inventory = (struct smalti_inventory){0};
}
