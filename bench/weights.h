/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/inventory.h"

/* Files of more bytes than this are cut in shards by the writers of the published models. */
#define SMALTI_SHARD_BYTES INT64_C(10000000000)

/* Told of every piece that is written; not 0 stops. */
struct smalti_advance {
	int (*moved)(void *user, int64_t bytes); /* NULL: nobody listens */
	void *user;
};

/* Writes a component's weights by formula (bench/fill.h) to an existing directory as STEM.safetensors, or as
 * shards of at most `shard_bytes` (or one tensor) and their index. What was written before a failure is left:
 * each file is whole. SMALTI_ECANCELLED when `advance` stopped it; without one
 * the weights are a hole in the file, which is read as zeros. */
int smalti_weights_write(const char *directory, const char *stem, const struct smalti_inventory *inventory,
			 int64_t shard_bytes, const struct smalti_advance *advance,
			 struct smalti_error *error);
