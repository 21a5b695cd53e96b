/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TEXT_CLEANING_H
#define SMALTI_TEXT_CLEANING_H

#include "text/utf8.h"

/* One pass of diffusers' clean_caption: the 26 steps of docs/reference.md 2.3, in their order. Any number of
 * threads may use one. */
struct smalti_cleaner;

struct smalti_cleaner *smalti_cleaner_new(struct smalti_error *error);
void smalti_cleaner_free(struct smalti_cleaner *cleaner); /* NULL is fine */
int smalti_cleaner_run(const struct smalti_cleaner *cleaner, struct smalti_string *string,
		       struct smalti_error *error);

#endif
