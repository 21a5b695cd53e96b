/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_DATASET_BRACES_H
#define SMALTI_DATASET_BRACES_H

#include "base/error.h"

#include <stdint.h>

/* The names that a pattern stands for, in their order, as a shell and webdataset expand it: {00000..00009}
 * are numbers (with as many digits, if one begins with a 0), {a,b} are texts; several braces are all
 * combinations, the last one the fastest. Other braces are themselves. `each` gets each name, for free(), and
 * returns -1 with an error to end it. At most `limit` names. */
int smalti_braces_expand(const char *pattern, int64_t limit,
			 int (*each)(void *user, char *name, struct smalti_error *error), void *user,
			 struct smalti_error *error);

#endif
