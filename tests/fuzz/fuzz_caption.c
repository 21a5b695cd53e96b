/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "text/cleaning.h"

#include <stdlib.h>
#include <unistr.h>

/* Whatever the bytes, both cleanings give valid UTF-8. */
FUZZER(data, size)
{
	static struct smalti_cleaner *cleaner;
	if (!cleaner)
		cleaner = smalti_cleaner_new(NULL);
	for (enum smalti_cleaning cleaning = SMALTI_CLEANING_BASIC; cleaning <= SMALTI_CLEANING_STRIP;
	     cleaning++) {
		size_t length;
		char *prepared =
		    smalti_caption_prepare(cleaner, cleaning, (const char *)data, size, &length, NULL);
		if (prepared && u8_check((const uint8_t *)prepared, length))
			abort();
		free(prepared);
	}
	return 0;
}
