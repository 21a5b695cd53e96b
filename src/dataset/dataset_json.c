/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset_format.h"

/* An array of objects, cut at its commas so that a broken one does not keep the others from being read. */
struct json {
	struct smalti_dataset_text text;
	bool ended;
};

/* Brackets that are open: a bit each, set for a brace. Deeper ones are counted only; the parser refuses them
 * anyhow. */
struct nesting {
	uint64_t braces;
	int64_t depth;
};

static bool is_blank(int byte)
{
	return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* Skips blanks; returns the byte behind them. */
static int skip_blanks(struct smalti_byte_reader *reader)
{
	while (is_blank(smalti_byte_peek(reader)))
		reader->next++;
	return smalti_byte_peek(reader);
}

static void open_bracket(struct nesting *n, bool brace)
{
	if (n->depth < 64)
		n->braces = (n->braces & ~(UINT64_C(1) << n->depth)) | (uint64_t)brace << n->depth;
	n->depth++;
}

/* Closes also what was left open in it; one that was never opened closes nothing. */
static void close_bracket(struct nesting *n, bool brace)
{
	int64_t depth = n->depth;
	while (depth > 0 && depth <= 64 && (n->braces >> (depth - 1) & 1) != brace)
		depth--;
	if (depth > 0)
		n->depth = depth - 1;
}

/* Reads a string to its closing quote. One without it ends at the line's end: what comes behind can be read
 * again. Returns false at the file's end. */
static bool scan_string(struct smalti_byte_reader *reader)
{
	bool escaped = false;
	for (;;) {
		const int byte = smalti_byte_next(reader);
		if (byte == EOF)
			return false;
		smalti_item_add(reader, byte);
		if (byte == '\n' || (byte == '"' && !escaped))
			return true;
		escaped = byte == '\\' && !escaped;
	}
}

static bool in_braces(const struct nesting *n)
{
	return n->depth > 0 && n->depth <= 64 && n->braces >> (n->depth - 1) & 1;
}

/* Reads up to the comma or bracket behind the item; returns false at the file's end. An object in the place
 * of a key is the next item: this one was never closed. */
static bool scan_item(struct smalti_byte_reader *reader)
{
	struct nesting nesting = {0};
	bool key_next = false;
	for (;;) {
		const int byte = smalti_byte_peek(reader);
		if (byte == EOF || (nesting.depth == 0 && (byte == ',' || byte == ']')) ||
		    (key_next && byte == '{'))
			return byte != EOF;
		key_next = in_braces(&nesting) && (byte == ',' || (key_next && is_blank(byte)));
		smalti_item_add(reader, byte);
		reader->next++;
		if (byte == '"' && !scan_string(reader))
			return false;
		if (byte == '{' || byte == '[')
			open_bracket(&nesting, byte == '{');
		if (byte == '}' || byte == ']')
			close_bracket(&nesting, byte == '}');
	}
}

static enum smalti_dataset_status end_of_list(struct json *s, struct smalti_error *error)
{
	struct smalti_byte_reader *reader = &s->text.reader;
	s->ended = true;
	const bool closed = smalti_byte_next(reader) == ']';
	const bool more = skip_blanks(reader) != EOF;
	smalti_item_begin(reader);
	if (smalti_item_end(reader, error) < 0)
		return smalti_dataset_failure(error);
	if (closed && !more)
		return SMALTI_DATASET_END;
	smalti_fail(error, SMALTI_EFORMAT,
		    closed ? "text behind the list's end, at byte %lld: it is not read"
			   : "the list is cut short: no ']' at its end, byte %lld",
		    (long long)smalti_byte_offset(reader));
	return SMALTI_DATASET_BAD;
}

static enum smalti_dataset_status next_json(void *state, bool texts, struct smalti_dataset_entry *entry,
					    struct smalti_error *error)
{
	(void)texts;
	struct json *s = state;
	struct smalti_byte_reader *reader = &s->text.reader;
	if (s->ended)
		return SMALTI_DATASET_END;
	const int first = skip_blanks(reader);
	if (first == EOF || first == ']')
		return end_of_list(s, error);
	smalti_item_begin(reader);
	const bool whole = scan_item(reader);
	s->ended = !whole;
	if (whole && smalti_byte_peek(reader) == ',')
		reader->next++;
	int status = smalti_item_end(reader, error);
	if (status == 0 && !whole)
		status = smalti_fail(error, SMALTI_EFORMAT,
				     "the list is cut short: it ends within this item, at byte %lld",
				     (long long)smalti_byte_offset(reader));
	if (status == 0)
		status = smalti_dataset_parse(reader->item, reader->length, s->text.options, entry, error);
	return status == 0 ? SMALTI_DATASET_RECORD : smalti_dataset_failure(error);
}

static void *open_json(const struct smalti_dataset_source *source, struct smalti_error *error)
{
	struct json *s = smalti_dataset_text_open(source, sizeof(*s), error);
	if (!s)
		return NULL;
	/* Skips what it was recognised by: a byte order mark perhaps, blanks, a bracket. */
	while (smalti_byte_peek(&s->text.reader) != EOF && smalti_byte_next(&s->text.reader) != '[')
		;
	return s;
}

static void seek_json(void *state, const struct smalti_dataset_place *place)
{
	struct json *s = state;
	s->ended = false;
	smalti_dataset_text_seek(s, place);
}

const struct smalti_dataset_format smalti_dataset_json = {open_json, smalti_dataset_text_close,
							  smalti_dataset_text_tell, seek_json, next_json};
