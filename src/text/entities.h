/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "text/utf8.h"

/* HTML 5 character references with names in lower case: captions were made lower case before. */

/* Returns the text of a name (without & and ;), NULL if it is unknown. */
const char *smalti_entity(const char *name, size_t length);

/* Returns what byte 0x80 to 0x9f means in Windows-1252 (itself where it means nothing). */
uint32_t smalti_windows_1252(uint32_t byte);

/* Returns the number of `digits` ("65", "x41"); U+FFFD where it is 0 or no character. */
uint32_t smalti_character_number(const char *digits, size_t length);

/* Decodes references. Lenient, as Python's html.unescape(): also old names without a semicolon, even when
 * letters follow. Strict, as ftfy: only references with a semicolon. */
int smalti_unescape(struct smalti_string *string, bool strict, struct smalti_error *error);
