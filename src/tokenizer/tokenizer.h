/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The T5 tokenizer of docs/reference.md 2.1: SentencePiece pieces, then end-of-sentence. Special tokens
 * written in the text (`</s>`, `<pad>`, `<unk>`, `<extra_id_K>`) become those tokens; the text between them
 * is tokenized on its own. */
struct smalti_tokenizer;

/* Longest text in bytes; longer ones are refused. */
enum { SMALTI_TEXT_BYTES = 1 << 20 };

/* Opens the tokenizer's directory, with spiece.model (tokenizer_config.json then gives extra_ids, 100 by
 * default) or else tokenizer.json. NULL with an error that names the file. */
struct smalti_tokenizer *smalti_tokenizer_open(const char *directory, struct smalti_error *error);
void smalti_tokenizer_close(struct smalti_tokenizer *tokenizer); /* NULL is fine */

/* Returns the path of that file, for free(). */
char *smalti_tokenizer_file(const char *directory, struct smalti_error *error);

/* Returns the bound of ids: pieces and extra ids are below it. The text encoder's vocab_size must be as
 * large, or ids that it lacks must be refused. */
int64_t smalti_tokenizer_vocabulary(const struct smalti_tokenizer *tokenizer);

/* Encodes `length` bytes of text (no terminator needed, NUL is a character, invalid UTF-8 becomes U+FFFD): at
 * most max_length - 1 ids (max_length >= 1), then end-of-sentence. A text that ends with it gets no second
 * one, unless a tokenizer.json ends every text. No padding. Exact, except that a run of more than 4096 bytes
 * without a space is cut. *ids is for free(); *count >= 1. Threads may share a tokenizer. */
int smalti_tokenizer_encode(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			    int64_t max_length, int32_t **ids, int64_t *count, struct smalti_error *error);
