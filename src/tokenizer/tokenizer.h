/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The T5 tokenizer of docs/reference.md 2.1: SentencePiece pieces, then end-of-sentence. Special tokens
 * written in the text (`</s>`, `<pad>`, `<unk>`, `<extra_id_K>`) are those tokens; the stretches between them
 * are tokenized on their own. */
struct smalti_tokenizer;

/* Longest text in bytes; longer ones are refused. */
enum { SMALTI_TEXT_BYTES = 1 << 20 };

/* directory: the tokenizer's, with spiece.model (extra_ids then comes from tokenizer_config.json, 100 where
 * it is silent or absent), or else tokenizer.json. NULL with an error that names the file. */
struct smalti_tokenizer *smalti_tokenizer_open(const char *directory, struct smalti_error *error);
void smalti_tokenizer_close(struct smalti_tokenizer *tokenizer); /* NULL is fine */

/* Which of the two files that is, for free(). */
char *smalti_tokenizer_file(const char *directory, struct smalti_error *error);

/* Ids are below this: pieces and extra ids. The text encoder's vocab_size must be at least as large,
 * or ids that it lacks be refused. */
int64_t smalti_tokenizer_vocabulary(const struct smalti_tokenizer *tokenizer);

/* Ids of `length` bytes of text (no terminator needed, NUL is a character, invalid UTF-8 becomes
 * U+FFFD): at most max_length - 1 (max_length >= 1), then end-of-sentence, which is not added again
 * where the text ended with it, unless a tokenizer.json says what comes behind a text. No padding. Exact,
 * save that a run of more than 4096 bytes without a space is tokenized as if there were some. *ids is for
 * free(); *count >= 1. Any number of threads may encode with one tokenizer. */
int smalti_tokenizer_encode(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			    int64_t max_length, int32_t **ids, int64_t *count, struct smalti_error *error);
