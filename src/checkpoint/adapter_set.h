/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/adapter.h"

/* The adapters of a model, each with its weight w. */
struct smalti_adapter_set {
	struct smalti_inventory tensors[SMALTI_ADAPTED_COMPONENTS]; /* of the base */
	struct smalti_adapter_use {
		struct smalti_adapter *adapter;
		double weight;
	} * uses; /* in the order in which they were given */
	int count;
};

/* Makes a set without adapters; it takes the lists of tensors over. NULL without memory. */
struct smalti_adapter_set *smalti_adapter_set_new(struct smalti_inventory tensors[SMALTI_ADAPTED_COMPONENTS],
						  struct smalti_error *error);
/* Reads an adapter and adds it. DoRA beside another change of the same matrix is refused: the order of the
 * two would matter. */
int smalti_adapter_set_add(struct smalti_adapter_set *set, const char *path, double weight,
			   struct smalti_error *error);
void smalti_adapter_set_free(struct smalti_adapter_set *set); /* NULL is allowed */

/* Returns the first adapter that changes this component, with `dora` by DoRA; NULL: none does. */
const struct smalti_adapter *smalti_adapter_set_find(const struct smalti_adapter_set *set, int component,
						     bool dora);
