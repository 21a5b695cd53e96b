/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_TEXT_H
#define SMALTI_JOBS_TEXT_H

#include "jobs/model.h"
#include "smalti/generate.h"

/* Texts as the transformer reads them, each encoded once while it is in use or was used lately: above all the
 * empty negative prompt. Used by one thread, the one that inserts tasks. */
struct smalti_texts;

/* A text under one token sequence; its encoding may still be running. */
struct smalti_text {
	struct smalti_scope *scope; /* fails with the encoding; who reads the caption needs it */
	struct smalti_caption *caption;
	int64_t tokens;
};

/* Encodings fail when `scope` does. */
struct smalti_texts *smalti_texts_new(struct smalti_model *model, struct smalti_scope *scope,
				      struct smalti_error *error);
/* After the last task that reads a caption was inserted. NULL is allowed. */
void smalti_texts_free(struct smalti_texts *texts);

/* Prepares, tokenizes and (if it is not there) inserts the tasks that encode; give it back. */
const struct smalti_text *smalti_text_get(struct smalti_texts *texts, const char *prompt,
					  enum smalti_cleaning cleaning, int64_t priority,
					  struct smalti_error *error);
void smalti_text_put(struct smalti_texts *texts, const struct smalti_text *text);

#endif
