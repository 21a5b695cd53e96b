/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The middle one, the mean of both where two are in the middle; sorts `values`, of which there is one or
 * more. */
double smalti_median(double *values, int count);
