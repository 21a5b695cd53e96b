/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* The middle one, the mean of both where two are in the middle; sorts `values`, of which there is one or
 * more. */
double smalti_median(double *values, int count);
/* The least that so many of a hundred values do not pass; likewise. */
double smalti_percentile(double *values, int64_t count, int64_t percent);
