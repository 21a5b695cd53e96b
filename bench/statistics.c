/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/statistics.h"
#include "base/base.h"

double smalti_median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), smalti_ascending);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double smalti_percentile(double *values, int64_t count, int64_t percent)
{
	qsort(values, (size_t)count, sizeof(*values), smalti_ascending);
	return values[(count * percent + 99) / 100 - 1];
}
