/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BENCH_STATISTICS_H
#define SMALTI_BENCH_STATISTICS_H

/* The middle one, the mean of both where two are in the middle; sorts `values`, of which there is one or
 * more. */
double smalti_median(double *values, int count);

#endif
