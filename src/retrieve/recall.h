/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/retrieve.h"

#include <cjson/cJSON.h>

enum { SMALTI_RECALL_DEPTHS = 3 };
extern const int64_t smalti_recall_depths[SMALTI_RECALL_DEPTHS]; /* 1, 5, 10 */

/* Of one query more the right item was found at this place, from 0 on; a negative one: it was not. What is
 * counted are sums, until smalti_recall_end() makes shares of `count` queries of them. */
void smalti_recall_add(struct smalti_recall *recall, int64_t place);
void smalti_recall_end(struct smalti_recall *recall, int64_t count);

/* As an object of this name: "R@1", "R@5", "R@10" and "MRR". */
void smalti_recall_write(cJSON *object, const char *name, const struct smalti_recall *recall);
