/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_SHARD_SIZE_H
#define SMALTI_EXTRACT_SHARD_SIZE_H

#include "extract/window.h"

/* Items in a shard: as the options say, or as many as make about so many bytes, judged by the first of
 * `within`. -1 with an error. */
int64_t smalti_shard_items(const struct smalti_extract_parts *parts, const struct smalti_range *within,
			   struct smalti_error *error);

#endif
