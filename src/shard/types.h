/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/h5.h"
#include "shard/layout.h"

/* The arrays and attributes of shards as HDF5 has them. */

/* Returns the extents of `count` entries. */
struct smalti_h5_extents smalti_shard_extents(const struct smalti_shard_schema *schema, int array,
					      int64_t count);
/* Makes the array's dataset, without a cache of chunks; negative where it cannot be made. With `more` it can
 * grow. */
hid_t smalti_shard_make_dataset(hid_t file, const struct smalti_shard_schema *schema, int array,
				int64_t text_bytes, int64_t count, bool more, hid_t creation);
/* Writes the schema as attributes of the root and of the captions' groups, which have to be there. */
int smalti_shard_write_schema(hid_t root, const struct smalti_shard_schema *schema, const char *format);
