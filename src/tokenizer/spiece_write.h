/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TOKENIZER_SPIECE_WRITE_H
#define SMALTI_TOKENIZER_SPIECE_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The messages of a SentencePiece model (a ModelProto) of type unigram, one after the other into a stream. */

/* ModelProto.SentencePiece.type */
enum smalti_piece_type {
	SMALTI_PIECE_NORMAL = 1,
	SMALTI_PIECE_UNKNOWN = 2,
	SMALTI_PIECE_CONTROL = 3, /* has an id, is not found in text */
	SMALTI_PIECE_BYTE = 6,
};

/* In the order of their ids. */
void smalti_spiece_write_piece(FILE *to, const char *piece, float score, enum smalti_piece_type type);
/* byte_fallback: a character without a piece becomes pieces of type BYTE. */
void smalti_spiece_write_trainer(FILE *to, bool byte_fallback);
void smalti_spiece_write_normalizer(FILE *to, const uint8_t *charsmap, size_t length);

#endif
