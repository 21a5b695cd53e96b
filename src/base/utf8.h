/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at `text`, of which `left` bytes are there; 0 when there is none: truncated,
 * overlong, a surrogate, past U+10FFFF, or no UTF-8 at all. */
size_t smalti_utf8_length(const char *text, size_t left);

/* Bytes that are in no character become '?'. */
void smalti_utf8_repair(char *text);

/* Whether all of it is UTF-8 (NUL is a character like others). */
bool smalti_utf8_valid(const char *text, size_t length);

/* Bytes of the byte order mark at the beginning: 3 or 0. */
size_t smalti_utf8_mark(const char *text, size_t length);
