/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the bytes of the UTF-8 character at `text`, of which `left` bytes exist; 0 if there is none:
 * truncated, overlong, a surrogate, past U+10FFFF, or not UTF-8 at all. */
size_t smalti_utf8_length(const char *text, size_t left);

/* Replaces bytes that belong to no character by '?'. */
void smalti_utf8_repair(char *text);

/* Tells whether all of it is UTF-8 (NUL is a normal character). */
bool smalti_utf8_valid(const char *text, size_t length);

/* Returns the bytes of the byte order mark at the beginning: 3 or 0. */
size_t smalti_utf8_mark(const char *text, size_t length);
