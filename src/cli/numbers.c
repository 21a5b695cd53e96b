/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Writes about three digits. */
const char *smalti_number_bytes(double value, char text[SMALTI_NUMBER])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};
	int unit = 0;
	for (; fabs(value) >= 1024 * 0.9995 && units[unit + 1]; unit++)
		value /= 1024;
	const int digits = fabs(value) >= 99.95 || value == floor(value) ? 0 : fabs(value) >= 9.995 ? 1 : 2;
	snprintf(text, SMALTI_NUMBER, "%.*f %s", digits, value, units[unit]);
	return text;
}

const char *smalti_number_seconds(double value, char text[SMALTI_NUMBER])
{
	const int64_t whole = (int64_t)(value + 0.5);
	if (value > 0 && value < 0.0995)
		snprintf(text, SMALTI_NUMBER, "%.3g ms", 1e3 * value);
	else if (value < 59.5)
		snprintf(text, SMALTI_NUMBER, value < 9.95 ? "%.3g s" : "%.0f s", value);
	else if (whole < 3600)
		snprintf(text, SMALTI_NUMBER, "%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
	else
		snprintf(text, SMALTI_NUMBER, "%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600,
			 whole / 60 % 60, whole % 60);
	return text;
}

const char *smalti_plural(int64_t count)
{
	return count == 1 ? "" : "s";
}
