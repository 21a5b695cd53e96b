/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Makes a SentencePiece model (a ModelProto, docs/reference.md 2.1) safe for libsentencepiece, which
 * trusts it: checks the wire format, the model type (unigram), number and length of pieces and the
 * character map; keeps in place only the fields that encoding needs (pieces, trainer_spec,
 * normalizer_spec), so that no self-test runs. *length becomes the new length.
 * SMALTI_EFORMAT, or SMALTI_EUNSUPPORTED for what a T5 model does not have. */
int smalti_spiece_sanitize(uint8_t *model, size_t *length, struct smalti_error *error);

/* Checks a precompiled_charsmap (docs/reference.md 2.1): SentencePiece walks its double array and its
 * pool of strings without looking at their bounds. After success no text can lead outside the blob,
 * no text has more than 32 matching prefixes (the room that SentencePiece has for them), and no
 * replacement is longer than 64 bytes. SMALTI_EFORMAT otherwise. */
int smalti_charsmap_check(const uint8_t *blob, size_t length, struct smalti_error *error);
