/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TEXT_CAPTION_H
#define SMALTI_TEXT_CAPTION_H

#include "base/error.h"
#include "smalti/generate.h"
#include "text/cleaning.h"

#include <stddef.h>

/* Of enum smalti_cleaning, ended by NULL. */
extern const char *const smalti_cleanings[];

/* Longest caption for full cleaning in bytes: the time of its patterns grows with the square. */
enum { SMALTI_CLEANING_BYTES = 8 << 10 };

/* Prepares a caption for the tokenizer (docs/reference.md 2.3); `cleaner` may be NULL unless cleaning is
 * FULL. The result and its length (NUL may be inside; there is one more at the end) are for free(). RAW: the
 * same bytes. Others: valid UTF-8. NULL with SMALTI_EINVAL for a caption that is too long,
 * SMALTI_EUNSUPPORTED where a pattern takes too many steps, SMALTI_ENOMEM. */
char *smalti_caption_prepare(const struct smalti_cleaner *cleaner, enum smalti_cleaning cleaning,
			     const char *text, size_t length, size_t *prepared, struct smalti_error *error);

#endif
