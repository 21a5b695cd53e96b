/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A set of 64-bit hashes, to find repeated names among millions: 16 bytes a name; two of n names are confused
 * with a probability of n²/2⁶⁵. Initialise with zeros. */
struct smalti_set {
	uint64_t *slots; /* 0: free */
	int64_t capacity, count;
};

/* Adds a hash. 1: added, 0: it was there, -1: no memory. */
int smalti_set_add(struct smalti_set *set, uint64_t hash, struct smalti_error *error);
/* Tells whether a hash was added. */
bool smalti_set_has(const struct smalti_set *set, uint64_t hash);
void smalti_set_free(struct smalti_set *set);
