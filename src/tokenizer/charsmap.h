/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TOKENIZER_CHARSMAP_H
#define SMALTI_TOKENIZER_CHARSMAP_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Checks a precompiled_charsmap (docs/reference.md 2.1): SentencePiece walks its double array and its
 * pool of strings without looking at their bounds. After success no text can lead outside the blob,
 * no text has more than 32 matching prefixes (the room that SentencePiece has for them), and no
 * replacement is longer than 64 bytes. SMALTI_EFORMAT otherwise. */
int smalti_charsmap_check(const uint8_t *blob, size_t length, struct smalti_error *error);

#endif
