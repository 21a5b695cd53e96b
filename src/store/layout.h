/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_LAYOUT_H
#define SMALTI_STORE_LAYOUT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* How a shard's file is called. Its name says what is in it: items first … end − 1, made anew `remake` times
 * (shard-000000000000-000000001000.h5, shard-000000000000-000000001000-r1.h5). */
struct smalti_shard_id {
	int64_t first, end;
	int remake;
};

enum { SMALTI_SHARD_NAME = 80, SMALTI_TOKEN = 16 };
#define SMALTI_ITEMS_MAX INT64_C(999999999999) /* 12 digits */

/* How a range of items is called in names of files: FIRST-END, 12 digits each. */
enum { SMALTI_RANGE_NAME = 48 };
void smalti_range_name(int64_t first, int64_t end, char name[SMALTI_RANGE_NAME]);
/* What follows it; NULL if the text does not begin with a range. */
const char *smalti_range_parse(const char *text, int64_t *first, int64_t *end);

void smalti_shard_name(const struct smalti_shard_id *id, char name[SMALTI_SHARD_NAME]);
/* Whether a file of that name is a shard, and which. */
bool smalti_shard_name_parse(const char *name, struct smalti_shard_id *id);

/* DIRECTORY/.shard-FIRST-END.h5.TOKEN.part: what a claim's holder writes. NULL with an error; free with
 * free().
 */
char *smalti_part_path(const char *directory, int64_t first, int64_t end, const char *token,
		       struct smalti_error *error);

#endif
