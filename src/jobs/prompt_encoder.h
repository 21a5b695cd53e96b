/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/t5/t5.h"
#include "jobs/known_texts.h"
#include "jobs/unused.h"
#include "smalti/generate.h"
#include "text/cleaning.h"
#include "tokenizer/tokenizer.h"

/* The first stage of a pipeline: from texts to token ids to hidden states. */
struct smalti_prompt_encoder {
	struct smalti_cleaner *cleaner;
	struct smalti_tokenizer *tokenizer;
	struct smalti_checkpoint *checkpoint;
	struct smalti_text_encoder *model;      /* NULL: it was never opened */
	struct smalti_t5_config config;         /* from which the model was made */
	const struct smalti_known_texts *known; /* used instead of a model; NULL: there is a model */
	int64_t max_tokens;                     /* of a text, with its end mark; the caller's to set */
	struct smalti_adapter_set *adapters;    /* of an encoder alone; NULL: none */
};

/* Open both directories: first the files, then the model; or all at once, as an encoder alone, with the
 * options' adapters. Of the options they take the variant and the precisions, too. Close it in any case. @{
 */
int smalti_prompt_encoder_open_files(struct smalti_prompt_encoder *encoder, const char *tokenizer,
				     const char *directory, const struct smalti_model_options *how,
				     struct smalti_error *error);
int smalti_prompt_encoder_open_model(struct smalti_prompt_encoder *encoder,
				     struct smalti_task_group *task_group,
				     const struct smalti_model_options *how, struct smalti_error *error);
int smalti_prompt_encoder_open(struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group,
			       const char *tokenizer, const char *directory,
			       const struct smalti_model_options *how, struct smalti_error *error);
/* @} */
void smalti_prompt_encoder_close(struct smalti_prompt_encoder *encoder);

/* Opens the encoder that the options name, computing in f32, with its digest; *directory, for free(), is the
 * encoder's. Close it in any case. */
int smalti_prompt_encoder_open_of(struct smalti_prompt_encoder *encoder, struct smalti_task_group *task_group,
				  const struct smalti_model_options *model, char **directory,
				  char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error);

/* Digests an open encoder: its files, and of every tensor its name, type, shape and beginning. */
int smalti_prompt_encoder_digest(const struct smalti_prompt_encoder *encoder, const char *tokenizer,
				 const char *directory, char digest[SMALTI_DIGEST_LENGTH + 1],
				 struct smalti_error *error);

/* Makes the tokens of a text, `*count` of them and at most max_tokens, for free(); after a failure nothing is
 * left. */
int smalti_prompt_encoder_tokenize(const struct smalti_prompt_encoder *encoder, const char *text,
				   size_t length, enum smalti_cleaning cleaning, int32_t **ids,
				   int64_t *count, struct smalti_error *error);

/* Reads the words that a model was trained on: DIRECTORY/words.txt, separated by white space. *words is NULL
 * if there is no such file, else for free(). */
int smalti_words_read(const char *directory, char **words, struct smalti_error *error);

/* Finds what is not read of a text; `words` may be NULL. Free it in any case. */
int smalti_unread_of(const struct smalti_prompt_encoder *encoder, const char *words, const char *text,
		     enum smalti_cleaning cleaning, struct smalti_unread *unread, struct smalti_error *error);
