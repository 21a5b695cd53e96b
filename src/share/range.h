/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A range of items: first … end − 1. */
struct smalti_range {
	int64_t first, end;
};

#define SMALTI_ITEMS_MAX INT64_C(999999999999) /* 12 digits */

/* Returns part `part` of `parts` of a range: all parts together are the range, each item in one; the lengths
 * differ by at most 1, so that some are empty when there are more parts than items. */
struct smalti_range smalti_range_part(const struct smalti_range *range, int64_t part, int64_t parts);

/* The name of a range in names of files: FIRST-END, 12 digits each. */
enum { SMALTI_RANGE_NAME = 48 };
void smalti_range_name(int64_t first, int64_t end, char name[SMALTI_RANGE_NAME]);
/* Returns what follows the range; NULL if the text does not begin with one. */
const char *smalti_range_parse(const char *text, int64_t *first, int64_t *end);
