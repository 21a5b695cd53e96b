/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Places for tiles whose memory the system has refused: they hold nothing. */

/* Has a place of so many bytes that may be written and read: other ranks (rt/ranks.h) send there and from
 * there, whatever has failed. It takes addresses, and of memory 2 MB in all. By one thread. */
int smalti_refused_prepare(int64_t bytes, struct smalti_error *error);
/* A place of so many bytes, if any was prepared; else one that nobody may touch. Any thread. */
void *smalti_refused_place(int64_t bytes);
bool smalti_refused_has(const void *memory);
/* When no tile is left. */
void smalti_refused_free(void);
