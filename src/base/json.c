/* SPDX-License-Identifier: Apache-2.0 */
#include "base/byte_reader.h"
#include "base/file.h"
#include "base/json_kept.h"
#include "base/utf8.h"

#include <ctype.h>

enum { LINE = 1 << 20 };

/* Copies the text for cJSON: checks its limits, rewrites Python's numbers. */
struct cleaner {
	const unsigned char *in;
	size_t length;
	size_t at;
	char *out;
	size_t written;
	bool nuls;  /* strings may hold NULs */
	int digits; /* so far, of the current number */
	bool loses; /* cJSON would lose information */
};

enum { EXACT_DIGITS = 15 }; /* a double keeps so many */

static int broken(const struct cleaner *c, const char *what, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EFORMAT, "not valid JSON: %s at byte %zu", what, c->at);
}

static void copy(struct cleaner *c, size_t count)
{
	memcpy(c->out + c->written, c->in + c->at, count);
	c->written += count;
	c->at += count;
}

static void replace(struct cleaner *c, size_t count, const char *by)
{
	memcpy(c->out + c->written, by, strlen(by));
	c->written += strlen(by);
	c->at += count;
	c->loses = true;
}

static int clean_string(struct cleaner *c, struct smalti_error *error)
{
	copy(c, 1);
	while (c->at < c->length) {
		unsigned char byte = c->in[c->at];
		size_t left = c->length - c->at;
		if (byte == '"') {
			copy(c, 1);
			return 0;
		}
		if (byte < 0x20)
			return broken(c, "a control character in a string", error);
		if (byte == '\\') {
			if (left >= 6 && !memcmp(c->in + c->at, "\\u0000", 6)) {
				if (!c->nuls)
					return broken(c, "a NUL in a string", error);
				replace(c, 6, "\xef\xbf\xbd");
				continue;
			}
			copy(c, left < 2 ? 1 : 2);
			continue;
		}
		size_t character = byte < 0x80 ? 1 : smalti_utf8_length((const char *)c->in + c->at, left);
		if (!character)
			return broken(c, "bytes that are not UTF-8", error);
		copy(c, character);
	}
	return broken(c, "the end inside a string", error);
}

static bool clean_python_number(struct cleaner *c)
{
	static const struct {
		const char *python, *json;
	} words[] = {{"NaN", "null"}, {"Infinity", "1e999"}, {"-Infinity", "-1e999"}};
	for (size_t i = 0; i < COUNT_OF(words); i++) {
		size_t length = strlen(words[i].python);
		if (c->length - c->at < length || memcmp(c->in + c->at, words[i].python, length))
			continue;
		replace(c, length, words[i].json);
		return true;
	}
	return false;
}

static bool is_after_digit(const struct cleaner *c)
{
	return c->at > 0 && (isdigit(c->in[c->at - 1]) || c->in[c->at - 1] == '.');
}

static int clean(struct cleaner *c, struct smalti_error *error)
{
	int depth = 0;
	while (c->at < c->length) {
		unsigned char byte = c->in[c->at];
		if (byte == '"') {
			if (clean_string(c, error))
				return -1;
			continue;
		}
		if (clean_python_number(c))
			continue;
		if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte >= 0x7f)
			return broken(c, "a character that has no place", error);
		depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
		if (depth > SMALTI_JSON_DEPTH)
			return broken(c, "nesting that is too deep", error);
		c->digits = isdigit(byte) ? c->digits + 1 : 0;
		c->loses =
		    c->loses || c->digits > EXACT_DIGITS || byte == 'E' || (byte == 'e' && is_after_digit(c));
		copy(c, 1);
	}
	c->out[c->written] = '\0';
	return 0;
}

static int refuse_duplicates(const cJSON *object, struct smalti_error *error)
{
	int count = cJSON_GetArraySize(object);
	SCOPED(free) const char **names = smalti_calloc(count, sizeof(*names), error);
	if (!names)
		return -1;
	int used = 0, status = 0;
	const cJSON *item;
	cJSON_ArrayForEach (item, object)
		names[used++] = item->string;
	qsort(names, (size_t)used, sizeof(*names), smalti_by_name);
	for (int i = 1; i < used && !status; i++)
		if (!strcmp(names[i - 1], names[i]))
			status =
			    smalti_fail(error, SMALTI_EFORMAT, "the key \"%.100s\" is there twice", names[i]);
	return status;
}

static int refuse_all_duplicates(const cJSON *value, struct smalti_error *error)
{
	if (cJSON_IsObject(value) && refuse_duplicates(value, error))
		return -1;
	const cJSON *item;
	cJSON_ArrayForEach (item, value)
		if (refuse_all_duplicates(item, error))
			return -1;
	return 0;
}

static cJSON *parse_clean(const struct cleaner *c, struct smalti_error *error)
{
	const char *end = c->out;
	cJSON *value = cJSON_ParseWithLengthOpts(c->out, c->written + 1, &end, true);
	if (!value)
		smalti_fail(error, SMALTI_EFORMAT, "not valid JSON: syntax error near byte %td",
			    end - c->out);
	return value;
}

static cJSON *parse(const char *text, size_t length, bool nuls, struct smalti_error *error)
{
	/* NaN grows by one byte to null. */
	SCOPED(free) char *room = smalti_calloc((int64_t)(length + length / 3 + 1), 1, error);
	struct cleaner c = {.in = (const unsigned char *)text, .length = length, .out = room, .nuls = nuls};
	if (!room)
		return NULL;
	cJSON *value = clean(&c, error) ? NULL : parse_clean(&c, error);
	if (value && (refuse_all_duplicates(value, error) ||
		      (c.loses && smalti_json_keep(value, text, length, error)))) {
		cJSON_Delete(value);
		return NULL;
	}
	return value;
}

cJSON *smalti_json_parse(const char *text, size_t length, struct smalti_error *error)
{
	return parse(text, length, false, error);
}

cJSON *smalti_json_parse_data(const char *text, size_t length, struct smalti_error *error)
{
	return parse(text, length, true, error);
}

cJSON *smalti_json_read(const char *path, size_t limit, struct smalti_error *error)
{
	size_t length;
	SCOPED(free) char *text = smalti_file_read(path, limit, &length, error);
	if (!text)
		return NULL;
	cJSON *value = smalti_json_parse(text, length, error);
	if (!value)
		smalti_error_prefix(error, "%s", path);
	return value;
}

static int write_value(const char *path, const cJSON *value,
		       int (*end)(struct smalti_writer *writer, struct smalti_error *error),
		       struct smalti_error *error)
{
	SCOPED(free) char *text = cJSON_Print(value);
	if (!text)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: out of memory for the text", path);
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (writer)
		fprintf(smalti_writer_stream(writer), "%s\n", text);
	return writer ? end(writer, error) : -1;
}

int smalti_json_write(const char *path, const cJSON *value, struct smalti_error *error)
{
	return write_value(path, value, smalti_writer_commit, error);
}

int smalti_json_place(const char *path, const cJSON *value, struct smalti_error *error)
{
	return write_value(path, value, smalti_writer_place, error);
}

bool smalti_json_add_text(cJSON *object, const char *key, const char *text)
{
	SCOPED(free) char *clean = strdup(text);
	if (clean)
		smalti_utf8_repair(clean);
	return clean && cJSON_AddStringToObject(object, key, clean);
}

int smalti_json_lines(int file, int (*each)(void *user, cJSON **line, struct smalti_error *error), void *user,
		      int64_t *unreadable, struct smalti_error *error)
{
	SCOPED(free) struct smalti_byte_reader *reader = smalti_calloc(1, sizeof(*reader), error);
	if (!reader)
		return -1;
	reader->file = file;
	reader->limit = LINE;
	int found = 1, taken = 0;
	bool well = true;
	while (found && taken <= 0 && well) {
		struct smalti_error own = SMALTI_NO_ERROR;
		found = smalti_item_line(reader, &own);
		SCOPED(cJSON_Delete)
		cJSON *line = found > 0 ? smalti_json_parse(reader->item, reader->length, &own) : NULL;
		taken = line ? each(user, &line, &own) : -1;
		*unreadable += found && taken < 0;
		well = own.code == SMALTI_OK || smalti_is_of_input(own.code) || smalti_pass(error, &own) == 0;
	}
	smalti_byte_reader_free(reader);
	return well ? 0 : -1;
}
