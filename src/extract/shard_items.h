/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extract/parts.h"
#include "store/store.h"

/* The items of a shard: a number, as many as make so many bytes, or SMALTI_SHARD_ITEMS_AUTO. The process that
 * makes the directory decides the last, and its identity keeps the number for all others. */

enum { SMALTI_SHARD_ITEMS_MAX = 1 << 30 };

/* Averages over items. */
struct smalti_shard_facts {
	double bytes;       /* of an item's values */
	double memory;      /* of an item until its shard is written */
	double together;    /* items that are computed together */
	int64_t items;      /* of the list */
	int64_t may_memory; /* for all items of a shard together */
};

/* Returns as many whole packs as make no more than 1 GiB, fit the memory, and leave items for 64 processes;
 * but one item at least. */
int64_t smalti_shard_items_auto(const struct smalti_shard_facts *facts);

/* Returns what the options say; for bytes it reads the first items of `within`. In a new directory it adds
 * the value of `auto` to the identity, by the list's first items, with `images` computed at a time; `auto` is
 * 0 until smalti_shard_items_recorded() has read it. -1 with an error. */
int64_t smalti_shard_items(struct smalti_extract_parts *parts, const struct smalti_range *within,
			   int64_t images, struct smalti_error *error);
/* Returns the number in the directory's identity; 1024 for a directory that was made without `auto`; -1 with
 * an error. */
int64_t smalti_shard_items_recorded(const char *directory, struct smalti_error *error);
