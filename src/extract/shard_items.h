/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extract/parts.h"
#include "store/store.h"

/* How many items a shard has: a number, as many as make so many bytes, or SMALTI_SHARD_ITEMS_AUTO. The last
 * one is decided by who makes the directory, and stands in its identity, so that whoever goes on takes the
 * same. */

enum { SMALTI_SHARD_ITEMS_MAX = 1 << 30 };

/* Says what items are like, on average. */
struct smalti_shard_facts {
	double bytes;       /* of an item's values */
	double memory;      /* that an item takes until its shard is written */
	double together;    /* items that are computed together */
	int64_t items;      /* of the list */
	int64_t may_memory; /* that all items of a shard may take */
};

/* Returns as many whole packs as make no more than 1 GiB, keep to the memory, and leave 64 processes
 * something to do; but one at least. */
int64_t smalti_shard_items_auto(const struct smalti_shard_facts *facts);

/* Returns what the options say: for bytes it looks at the first items of `within`. Where the directory is to
 * be made, it adds to the identity what `auto` stands for, by the list's first items, if `images` are at work
 * at a time; `auto` is 0 until smalti_shard_items_recorded() has read it. -1 with an error. */
int64_t smalti_shard_items(struct smalti_extract_parts *parts, const struct smalti_range *within,
			   int64_t images, struct smalti_error *error);
/* Returns what stands in the directory; 1024 for one that was made without `auto`; -1 with an error. */
int64_t smalti_shard_items_recorded(const char *directory, struct smalti_error *error);
