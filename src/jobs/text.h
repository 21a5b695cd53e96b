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
	struct smalti_task_group *task_group; /* fails with the encoding; who reads the caption needs it */
	struct smalti_cross_cache *cache;
	int64_t tokens;
};

/* Encodings fail when `task_group` does. */
struct smalti_texts *smalti_texts_new(struct smalti_model *model, struct smalti_task_group *task_group,
				      struct smalti_error *error);
/* After the last task that reads a caption was inserted. NULL is allowed. */
void smalti_texts_free(struct smalti_texts *texts);

enum { SMALTI_TEXTS_TOGETHER = 2 };

/* Prepares, tokenizes and inserts the tasks that encode those of up to SMALTI_TEXTS_TOGETHER prompts that are
 * not there, together; found[i] is the text of prompts[i]. Give each back; after a failure there are none. */
int smalti_texts_get(struct smalti_texts *texts, const char *const *prompts, int count,
		     enum smalti_cleaning cleaning, int64_t priority, const struct smalti_text **found,
		     struct smalti_error *error);
/* Bytes of the captions that are kept and not in use; and to forget them. */
int64_t smalti_texts_unused_bytes(const struct smalti_texts *texts);
void smalti_texts_drop_unused(struct smalti_texts *texts);
void smalti_text_put(struct smalti_texts *texts, const struct smalti_text *text);

#endif
