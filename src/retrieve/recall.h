/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/retrieve.h"

#include <cjson/cJSON.h>

enum { SMALTI_RECALL_DEPTHS = 3 };
extern const int64_t smalti_recall_depths[SMALTI_RECALL_DEPTHS]; /* 1, 5, 10 */

/* Counts a query whose right item was found at this place, from 0 on; negative: it was not. Counts are sums
 * until smalti_recall_end() makes them shares of `count` queries. */
void smalti_recall_add(struct smalti_recall *recall, int64_t place);
void smalti_recall_end(struct smalti_recall *recall, int64_t count);

/* Adds an object of this name: "R@1", "R@5", "R@10" and "MRR". */
void smalti_recall_write(cJSON *object, const char *name, const struct smalti_recall *recall);
