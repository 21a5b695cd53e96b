/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Returns the middle value, or the mean of the two middle ones; sorts `values`, of which there is at least
 * one. */
double smalti_median(double *values, int count);
/* Returns the least value that `percent` of a hundred do not exceed; likewise. */
double smalti_percentile(double *values, int64_t count, int64_t percent);
