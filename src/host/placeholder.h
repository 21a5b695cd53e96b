/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Placeholder memory for tiles whose memory the system has refused: it holds no data. */

/* Prepares placeholder memory of `bytes` bytes that may be written and read: other ranks (ranks/ranks.h) send
 * to it and from it, whatever has failed. It takes addresses, and 2 MB of memory in all. One thread calls
 * it. */
int smalti_placeholder_prepare(int64_t bytes, struct smalti_error *error);
/* Returns a placeholder of `bytes` bytes, if any was prepared; else one that no code may access. Any
 * thread. */
void *smalti_placeholder_memory(int64_t bytes);
bool smalti_placeholder_has(const void *memory);
/* Frees them when no tile is left. */
void smalti_placeholder_free(void);
