/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TEXT_FIX_TEXT_H
#define SMALTI_TEXT_FIX_TEXT_H

#include "text/utf8.h"

/* ftfy.fix_text() with its defaults, but for two of its fixes: line breaks stay as they are (white space
 * is evened out later), and wrongly decoded text is not decoded again, for by then captions are in lower
 * case, which has destroyed the bytes. */
int smalti_fix_text(struct smalti_string *string, struct smalti_error *error);

#endif
