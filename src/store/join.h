/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_JOIN_H
#define SMALTI_STORE_JOIN_H

#include "store/shards.h"

/* DIRECTORY/features.h5: all committed shards as one, for programs that read HDF5. Its arrays are virtual, so
 * that values stay where they are; only where rows begin is written anew. The file appears complete or not at
 * all. Under the directory's lock. */
int smalti_join(const char *directory, const struct smalti_shards *shards, struct smalti_error *error);

#endif
