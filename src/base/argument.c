/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argument.h"

int smalti_check_given(const void *pointer, const char *what, struct smalti_error *error)
{
	return pointer ? 0 : smalti_fail(error, SMALTI_EINVAL, "%s: expected, found NULL", what);
}

int smalti_check_text(const char *text, const char *what, struct smalti_error *error)
{
	if (smalti_check_given(text, what, error) < 0)
		return -1;
	return *text ? 0 : smalti_fail(error, SMALTI_EINVAL, "%s: expected, found an empty text", what);
}

int smalti_check_range(int64_t value, int64_t least, int64_t most, const char *what,
		       struct smalti_error *error)
{
	if (value >= least && value <= most)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: expected %lld to %lld, found %lld", what,
			   (long long)least, (long long)most, (long long)value);
}
