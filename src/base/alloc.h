/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>

/* product *= factor, false on overflow (or a negative extent). */
bool smalti_multiply(int64_t *product, int64_t factor);

/* Zeroed memory for count × size bytes, both checked; NULL with an error when it cannot be had.
 * Free with free(). */
void *smalti_calloc(int64_t count, int64_t size, struct smalti_error *error);

/* Room for one more of the items of `size` bytes behind `count` that are there: where they are from then on,
 * or NULL with an error and the items as they were. Asked before each one that is added, from the first
 * (NULL, 0) on; the new one is not initialised. Free with free(). */
void *smalti_grow(void *items, int64_t count, int64_t size, struct smalti_error *error);

/* Uninitialised memory aligned to 64 bytes (a cache line and the widest vector). Free with free(). */
void *smalti_aligned_alloc(int64_t count, int64_t size, struct smalti_error *error);

/* printf into fresh memory; NULL with an error. Free with free(). */
char *smalti_format(struct smalti_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
