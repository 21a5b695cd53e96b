/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_UNREAD_H
#define SMALTI_JOBS_UNREAD_H

#include "jobs/prompt_encoder.h"

/* Words that a model was trained on: DIRECTORY/words.txt, separated by white space. *words is NULL where
 * there is no such file, else for free(). */
int smalti_words_read(const char *directory, char **words, struct smalti_error *error);

/* What is not read of a text; `words` may be NULL. Free it in any case. */
int smalti_unread_of(const struct smalti_prompt_encoder *encoder, const char *words, const char *text,
		     enum smalti_cleaning cleaning, struct smalti_unread *unread, struct smalti_error *error);

#endif
