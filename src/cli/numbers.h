/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Numbers as people read them, most with three digits. */

enum { SMALTI_NUMBER = 32 };
const char *smalti_number_bytes(double value, char text[SMALTI_NUMBER]);   /* "3 GiB" */
const char *smalti_number_seconds(double value, char text[SMALTI_NUMBER]); /* "5 ms", "42 s", "1:02:05" */

/* Returns the end of a plural: "" for 1, else "s". */
const char *smalti_plural(int64_t count);
