/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_COMPRESSION_H
#define SMALTI_EXTRACT_COMPRESSION_H

#include "extract/window.h"

/* Whether the values of a shard that begins with this window are to be compressed: measured where that is
 * asked for, since the low bits of features are noise that no method makes smaller, and rows that are not
 * compressed can be mapped. */
bool smalti_choose_compression(enum smalti_compression compression, const struct smalti_shard_schema *schema,
			       const struct smalti_window *window);

#endif
