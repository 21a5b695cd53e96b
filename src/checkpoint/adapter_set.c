/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter_set.h"

#include <math.h>

struct smalti_adapter_set *smalti_adapter_set_new(struct smalti_inventory tensors[SMALTI_ADAPTED_COMPONENTS],
						  struct smalti_error *error)
{
	struct smalti_adapter_set *set = smalti_calloc(1, sizeof(*set), error);
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS; c++)
		if (set)
			set->tensors[c] = tensors[c];
		else
			smalti_inventory_free(&tensors[c]);
	return set;
}

/* Checks the adapter that was added last beside the others. */
static int check_order(const struct smalti_adapter_set *set, struct smalti_error *error)
{
	const struct smalti_adapter *added = set->uses[set->count - 1].adapter;
	for (int i = 0; i < set->count - 1; i++)
		for (int64_t k = 0; k < added->count; k++) {
			const struct smalti_low_rank *mine = &added->changes[k], *other;
			other = smalti_adapter_find(set->uses[i].adapter, mine->tensor);
			if (other && (mine->magnitude || other->magnitude))
				return smalti_fail(error, SMALTI_EUNSUPPORTED,
						   "%s and %s both change %s, and one is DoRA: their order "
						   "would matter, so they cannot be used together",
						   set->uses[i].adapter->path, added->path, mine->tensor);
		}
	return 0;
}

int smalti_adapter_set_add(struct smalti_adapter_set *set, const char *path, double weight,
			   struct smalti_error *error)
{
	if (!isfinite(weight))
		return smalti_fail(error, SMALTI_EINVAL, "%s: the weight of an adapter should be a number",
				   path);
	const struct smalti_adapter_base base = {.tensors = {&set->tensors[0], &set->tensors[1]}};
	if (smalti_grow(&set->uses, set->count, sizeof(*set->uses), error) < 0)
		return -1;
	struct smalti_adapter *adapter = smalti_adapter_open(path, &base, error);
	if (!adapter)
		return -1;
	set->uses[set->count++] = (struct smalti_adapter_use){adapter, weight};
	return check_order(set, error);
}

void smalti_adapter_set_free(struct smalti_adapter_set *set)
{
	if (!set)
		return;
	for (int i = 0; i < set->count; i++)
		smalti_adapter_close(set->uses[i].adapter);
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS; c++)
		smalti_inventory_free(&set->tensors[c]);
	free(set->uses);
	free(set);
}

const struct smalti_adapter *smalti_adapter_set_find(const struct smalti_adapter_set *set, int component,
						     bool dora)
{
	for (int i = 0; i < set->count; i++)
		for (int64_t k = 0; k < set->uses[i].adapter->count; k++) {
			const struct smalti_low_rank *change = &set->uses[i].adapter->changes[k];
			if (change->component == component && (change->magnitude || !dora))
				return set->uses[i].adapter;
		}
	return NULL;
}
