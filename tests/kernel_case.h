/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"
#include "kernels/groupnorm.h"

#include <stdint.h>

/* For tests that call kernels on arrays. Arrays end the program without memory; free() frees them. */

/* Returns an array aligned for kernels. */
void *kernel_array(int64_t count, int64_t size);
/* Returns random values that the dtype has exactly. */
float *kernel_random(int64_t count, enum smalti_dtype dtype, uint64_t *state);
/* Returns the values in a dtype. */
void *kernel_given(const float *values, int64_t count, enum smalti_dtype dtype);

/* Values in a checkpoint's dtype at an odd address, as files may have them; `values` are rounded to them.
 * Free `block`. */
struct misaligned {
	char *block;
	const void *data;
};
struct misaligned kernel_misalign(enum smalti_dtype dtype, float *values, int64_t count);

/* The error of results, relative to the largest value or 1. Starts with zeros. */
struct kernel_error {
	double worst, largest;
};
void kernel_compare(struct kernel_error *error, double found, double expected);
/* Asserts the error once. */
void kernel_check(const struct kernel_error *error, double tolerance, const char *what);

/* Computes a group's moments of x [pixels, channels], by plain sums. */
struct smalti_moments kernel_moments(int64_t pixels, int64_t channels, int64_t groups, int64_t group,
				     const float *x);

/* Checks that two threads that call it at once, many times, each get the bytes of a single call. */
void kernel_check_threads(int (*call)(const void *operands, void *y, struct smalti_error *error),
			  const void *operands, const void *alone, int64_t bytes);
