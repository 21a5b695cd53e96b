/* SPDX-License-Identifier: Apache-2.0 */
#include "text/caption.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

const char *const smalti_cleanings[] = {[SMALTI_CLEANING_RAW] = "raw",
					[SMALTI_CLEANING_BASIC] = "basic",
					[SMALTI_CLEANING_FULL] = "full",
					[SMALTI_CLEANING_STRIP] = "strip",
					NULL};

static int clean(const struct smalti_cleaner *cleaner, enum smalti_cleaning cleaning,
		 struct smalti_string *string, struct smalti_error *error)
{
	if (cleaning == SMALTI_CLEANING_BASIC && smalti_string_lower(string, error))
		return -1;
	if (cleaning != SMALTI_CLEANING_FULL) {
		smalti_string_strip(string);
		return 0;
	}
	/* The reference cleans twice. */
	if (smalti_cleaner_run(cleaner, string, error) || smalti_cleaner_run(cleaner, string, error))
		return -1;
	return 0;
}

char *smalti_caption_prepare(const struct smalti_cleaner *cleaner, enum smalti_cleaning cleaning,
			     const char *text, size_t length, size_t *prepared, struct smalti_error *error)
{
	if (cleaning == SMALTI_CLEANING_FULL && length > SMALTI_CLEANING_BYTES) {
		smalti_fail(error, SMALTI_EINVAL,
			    "caption: %zu bytes, full cleaning takes at most %d; shorten it or choose basic",
			    length, (int)SMALTI_CLEANING_BYTES);
		return NULL;
	}
	if (cleaning == SMALTI_CLEANING_RAW) {
		char *copy = smalti_calloc((int64_t)length + 1, 1, error);
		if (copy && length > 0)
			memcpy(copy, text, length);
		*prepared = length;
		return copy;
	}
	struct smalti_string string;
	if (smalti_string_copy(&string, text, length, error))
		return NULL;
	if (clean(cleaner, cleaning, &string, error)) {
		free(string.bytes);
		return NULL;
	}
	*prepared = string.length;
	return string.bytes;
}
