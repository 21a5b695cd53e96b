/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "text/utf8.h"

/* The HTML 5 character references whose names are lower case: captions have lost their capitals
 * before. */

/* What the name (without & and ;) stands for, NULL if it is none. */
const char *smalti_entity(const char *name, size_t length);

/* What byte 0x80 to 0x9f means in Windows-1252 (itself where it means nothing). */
uint32_t smalti_windows_1252(uint32_t byte);

/* The number of `digits` ("65", "x41"); U+FFFD where that is 0 or no character. */
uint32_t smalti_character_number(const char *digits, size_t length);

/* Decodes references. Lenient as Python's html.unescape(): also old names without a semicolon, even when
 * letters follow. Strict as ftfy: only what a semicolon ends. */
int smalti_unescape(struct smalti_string *string, bool strict, struct smalti_error *error);
