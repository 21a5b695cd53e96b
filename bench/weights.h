/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/inventory.h"

/* The writers of the published models cut larger files into shards, in bytes. */
#define SMALTI_SHARD_BYTES INT64_C(10000000000)

/* Called after each written piece; not 0 stops. */
struct smalti_advance {
	int (*moved)(void *user, int64_t bytes); /* NULL: not wanted */
	void *user;
};

/* Writes a component's weights by formula (bench/fill.h) to an existing directory as STEM.safetensors, or as
 * shards of at most `shard_bytes` (or one tensor) and their index. A failure leaves the complete files that
 * were written before. SMALTI_ECANCELLED when `advance` stopped it; without one, the weights are a hole in
 * the file, which reads as zeros. */
int smalti_weights_write(const char *directory, const char *stem, const struct smalti_inventory *inventory,
			 int64_t shard_bytes, const struct smalti_advance *advance,
			 struct smalti_error *error);
