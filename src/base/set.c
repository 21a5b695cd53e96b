/* SPDX-License-Identifier: Apache-2.0 */
#include "base/set.h"

enum { FIRST_CAPACITY = 64 }; /* a power of two, as all capacities are */

/* Finds the slot of the hash, or the free one where it belongs. */
static uint64_t *find(const struct smalti_set *set, uint64_t hash)
{
	const uint64_t mask = (uint64_t)set->capacity - 1;
	uint64_t at = hash & mask;
	while (set->slots[at] && set->slots[at] != hash)
		at = (at + 1) & mask;
	return &set->slots[at];
}

static int grow(struct smalti_set *set, struct smalti_error *error)
{
	struct smalti_set larger = {.capacity = set->capacity ? 2 * set->capacity : FIRST_CAPACITY,
				    .count = set->count};
	larger.slots = smalti_calloc(larger.capacity, sizeof(*larger.slots), error);
	if (!larger.slots)
		return -1;
	for (int64_t i = 0; i < set->capacity; i++)
		if (set->slots[i])
			*find(&larger, set->slots[i]) = set->slots[i];
	free(set->slots);
	*set = larger;
	return 0;
}

bool smalti_set_has(const struct smalti_set *set, uint64_t hash)
{
	return set->count > 0 && *find(set, hash + (hash == 0));
}

int smalti_set_add(struct smalti_set *set, uint64_t hash, struct smalti_error *error)
{
	if (2 * set->count >= set->capacity && grow(set, error) < 0)
		return -1;
	hash += hash == 0; /* 0 marks a free slot */
	uint64_t *slot = find(set, hash);
	if (*slot)
		return 0;
	*slot = hash;
	set->count++;
	return 1;
}

void smalti_set_free(struct smalti_set *set)
{
	free(set->slots);
	*set = (struct smalti_set){0};
}
