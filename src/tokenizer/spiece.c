/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/spiece.h"
#include "tokenizer/tokenizer_json.h"

enum {
	MAX_PIECES = 1 << 20,
	MAX_PIECE_BYTES = 1024, /* the trie is built by recursion over the bytes of a piece */
	MAX_USER_DEFINED = 64,  /* the matcher's room for prefixes of one another */
	PIECE_USER_DEFINED = 4, /* ModelProto.SentencePiece.type */
	MODEL_TYPE_UNIGRAM = 1, /* TrainerSpec.model_type */
	WIRE_VARINT = 0,
	WIRE_64 = 1,
	WIRE_BYTES = 2,
	WIRE_32 = 5,
};

/* One field of a protobuf message. */
struct field {
	uint32_t number;
	unsigned wire;
	uint64_t value;       /* WIRE_VARINT */
	const uint8_t *bytes; /* WIRE_BYTES */
	size_t length;
};

struct reader {
	const uint8_t *at, *end;
};

struct tally {
	int64_t pieces, user_defined;
};

static bool read_varint(struct reader *reader, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
		uint8_t byte = *reader->at++;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool read_field(struct reader *reader, struct field *field)
{
	uint64_t tag, length = 0;
	if (!read_varint(reader, &tag) || tag > UINT32_MAX || tag < 8)
		return false;
	*field = (struct field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
	if (field->wire == WIRE_VARINT)
		return read_varint(reader, &field->value);
	if (field->wire == WIRE_64)
		length = 8;
	else if (field->wire == WIRE_32)
		length = 4;
	else if (field->wire != WIRE_BYTES || !read_varint(reader, &length))
		return false;
	if (length > (uint64_t)(reader->end - reader->at))
		return false;
	field->bytes = reader->at;
	field->length = (size_t)length;
	reader->at += length;
	return true;
}

static int fail_cut(struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EFORMAT, "not a SentencePiece model, or a damaged one");
}

static int check_piece(const struct field *field, struct tally *tally, struct smalti_error *error)
{
	if (field->number == 1 && field->wire == WIRE_BYTES &&
	    (field->length == 0 || memchr(field->bytes, 0, field->length)))
		return smalti_fail(error, SMALTI_EFORMAT, "pieces: one is empty or holds a NUL");
	if (field->number == 1 && field->wire == WIRE_BYTES && field->length > MAX_PIECE_BYTES)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "pieces: one has %zu bytes, at most %d are allowed", field->length,
				   (int)MAX_PIECE_BYTES);
	if (field->number == 3 && field->wire == WIRE_VARINT && field->value == PIECE_USER_DEFINED &&
	    ++tally->user_defined > MAX_USER_DEFINED)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "pieces: more than %d are USER_DEFINED; a T5 model has none",
				   (int)MAX_USER_DEFINED);
	return 0;
}

/* The messages of ModelProto that encoding needs. */
enum { PIECE = 1, TRAINER, NORMALIZER };

static int check_field(uint32_t message, const struct field *field, struct tally *tally,
		       struct smalti_error *error)
{
	if (message == PIECE)
		return check_piece(field, tally, error);
	if (message == NORMALIZER && field->number == 2 && field->wire == WIRE_BYTES && field->length > 0)
		return smalti_charsmap_check(field->bytes, field->length, error);
	if (message == TRAINER && field->number == 3 && field->wire == WIRE_VARINT &&
	    field->value != MODEL_TYPE_UNIGRAM)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "trainer_spec.model_type: expected %d (unigram), found %llu",
				   (int)MODEL_TYPE_UNIGRAM, (unsigned long long)field->value);
	return 0;
}

static int check_message(const struct field *message, struct tally *tally, struct smalti_error *error)
{
	struct reader reader = {message->bytes, message->bytes + message->length};
	struct field field;
	while (reader.at < reader.end) {
		if (!read_field(&reader, &field))
			return fail_cut(error);
		if (check_field(message->number, &field, tally, error))
			return -1;
	}
	return 0;
}

int smalti_spiece_sanitize(uint8_t *model, size_t *length, struct smalti_error *error)
{
	struct reader reader = {model, model + *length};
	struct tally tally = {0, 0};
	uint8_t *to = model;
	while (reader.at < reader.end) {
		const uint8_t *start = reader.at;
		struct field field;
		if (!read_field(&reader, &field))
			return fail_cut(error);
		bool keep = field.wire == WIRE_BYTES && field.number <= NORMALIZER;
		if (!keep)
			continue;
		if (check_message(&field, &tally, error))
			return -1;
		if (field.number == PIECE && ++tally.pieces > MAX_PIECES)
			return smalti_fail(error, SMALTI_EUNSUPPORTED, "pieces: more than %d",
					   (int)MAX_PIECES);
		memmove(to, start, (size_t)(reader.at - start));
		to += reader.at - start;
	}
	*length = (size_t)(to - model);
	return tally.pieces > 0 ? 0 : fail_cut(error);
}

/* The fields that are written of those messages; others keep their defaults. */
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_BYTE_FALLBACK = 35 };
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

/* Writes the tag and length before the bytes of a string or message. */
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
	put_length(to, PIECE, text + number + kind);
	put_length(to, PIECE_TEXT, length);
	fwrite(piece, 1, length, to);
	put_float(to, PIECE_SCORE, score);
	put_number(to, PIECE_TYPE, type);
}

void smalti_spiece_write_trainer(FILE *to, bool byte_fallback)
{
	put_length(to, TRAINER, 2 + 3);
	put_number(to, TRAINER_TYPE, MODEL_TYPE_UNIGRAM);
	put_number(to, TRAINER_BYTE_FALLBACK, byte_fallback); /* its tag has two bytes */
}

void smalti_spiece_write_normalizer(FILE *to, const uint8_t *charsmap, size_t length)
{
	put_length(to, NORMALIZER, 1 + varint_bytes(length) + length);
	put_length(to, NORMALIZER_CHARSMAP, length);
	fwrite(charsmap, 1, length, to);
}
