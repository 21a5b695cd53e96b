/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/spiece_write.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_32 = 5 };
/* Of ModelProto, and of its messages what is not left at its default. */
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_BYTE_FALLBACK = 35, UNIGRAM = 1 };
enum { NORMALIZER_CHARSMAP = 2 };

static size_t varint_bytes(uint64_t value)
{
	size_t bytes = 1;
	for (; value >= 0x80; value >>= 7)
		bytes++;
	return bytes;
}

static void put_varint(FILE *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		putc((int)(value & 0x7f) | 0x80, to);
	putc((int)value, to);
}

static void put_tag(FILE *to, unsigned number, unsigned wire)
{
	put_varint(to, number << 3 | wire);
}

static void put_number(FILE *to, unsigned number, uint64_t value)
{
	put_tag(to, number, WIRE_VARINT);
	put_varint(to, value);
}

/* What stands before the bytes of a string or message. */
static void put_length(FILE *to, unsigned number, size_t length)
{
	put_tag(to, number, WIRE_BYTES);
	put_varint(to, length);
}

static void put_float(FILE *to, unsigned number, float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	put_tag(to, number, WIRE_32);
	for (int shift = 0; shift < 32; shift += 8)
		putc((int)(bits >> shift & 0xff), to);
}

void smalti_spiece_write_piece(FILE *to, const char *piece, float score, enum smalti_piece_type type)
{
	const size_t length = strlen(piece);
	const size_t text = 1 + varint_bytes(length) + length, number = 5, kind = 2;
	put_length(to, MODEL_PIECE, text + number + kind);
	put_length(to, PIECE_TEXT, length);
	fwrite(piece, 1, length, to);
	put_float(to, PIECE_SCORE, score);
	put_number(to, PIECE_TYPE, type);
}

void smalti_spiece_write_trainer(FILE *to, bool byte_fallback)
{
	put_length(to, MODEL_TRAINER, 2 + 3);
	put_number(to, TRAINER_TYPE, UNIGRAM);
	put_number(to, TRAINER_BYTE_FALLBACK, byte_fallback); /* its tag has two bytes */
}

void smalti_spiece_write_normalizer(FILE *to, const uint8_t *charsmap, size_t length)
{
	put_length(to, MODEL_NORMALIZER, 1 + varint_bytes(length) + length);
	put_length(to, NORMALIZER_CHARSMAP, length);
	fwrite(charsmap, 1, length, to);
}
