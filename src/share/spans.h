/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "share/range.h"

/* A set of items as ranges in their order, none of which touches the next. Zeroed, it is empty. */
struct smalti_spans {
	struct smalti_range *ranges;
	int64_t count;
};

/* Adds a range of which nothing is in the set. */
int smalti_spans_add(struct smalti_spans *spans, const struct smalti_range *range,
		     struct smalti_error *error);
/* Returns the first range that ends behind `at`; without one, a range behind all items. */
struct smalti_range smalti_spans_next(const struct smalti_spans *spans, int64_t at);
int64_t smalti_spans_items(const struct smalti_spans *spans);
void smalti_spans_free(struct smalti_spans *spans); /* makes it empty */

/* Adds the set as [FIRST, END, FIRST, END, ...]. */
int smalti_spans_print(const struct smalti_spans *spans, cJSON *object, const char *key,
		       struct smalti_error *error);
/* Reads a set of items below `items`; with an error for any other text. */
int smalti_spans_read(struct smalti_spans *spans, const cJSON *object, const char *key, int64_t items,
		      struct smalti_error *error);
