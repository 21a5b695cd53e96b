/* SPDX-License-Identifier: Apache-2.0 */
#include "io/prompts.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "io/prompt_json.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum format { UNKNOWN, TEXT, JSON_LINES };

struct smalti_prompts {
	int file;
	char chunk[1 << 16]; /* read and not looked at: bytes next … filled − 1 */
	size_t next, filled;
	bool failed;
	char *path;
	enum format format;
	int64_t line; /* number of the line in the buffer */
	char *buffer; /* always with room for a NUL */
	size_t capacity, length;
	bool too_long;
};

struct smalti_prompts *smalti_prompts_open(const char *path, struct smalti_error *error)
{
	bool standard = strcmp(path, "-") == 0;
	struct smalti_prompts *prompts = smalti_calloc(1, sizeof(*prompts), error);
	if (!prompts)
		return NULL;
	prompts->path = smalti_format(error, "%s", standard ? "standard input" : path);
	prompts->file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (prompts->file < 0)
		smalti_fail_errno(error, "%s: cannot be opened", path);
	if (prompts->path && prompts->file >= 0)
		return prompts;
	smalti_prompts_close(prompts);
	return NULL;
}

void smalti_prompts_close(struct smalti_prompts *prompts)
{
	if (!prompts)
		return;
	if (prompts->file > STDIN_FILENO)
		close(prompts->file);
	free(prompts->path);
	free(prompts->buffer);
	free(prompts);
}

static int grow(struct smalti_prompts *prompts, struct smalti_error *error)
{
	size_t capacity = prompts->capacity ? prompts->capacity * 2 : 4096;
	char *buffer = realloc(prompts->buffer, capacity);
	if (!buffer)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a line of %zu bytes", capacity);
	prompts->buffer = buffer;
	prompts->capacity = capacity;
	return 0;
}

int smalti_prompts_file(const struct smalti_prompts *prompts)
{
	return prompts->file;
}

bool smalti_prompts_waits(const struct smalti_prompts *prompts)
{
	struct pollfd file = {.fd = prompts->file, .events = POLLIN};
	return !memchr(prompts->chunk + prompts->next, '\n', prompts->filled - prompts->next) &&
	       poll(&file, 1, 0) == 0;
}

/* The next byte, or EOF. */
static inline int next_byte(struct smalti_prompts *prompts)
{
	if (prompts->next == prompts->filled) {
		const ssize_t got = read(prompts->file, prompts->chunk, sizeof(prompts->chunk));
		prompts->next = 0;
		prompts->filled = got > 0 ? (size_t)got : 0;
		prompts->failed = got < 0;
		if (got <= 0)
			return EOF;
	}
	return (unsigned char)prompts->chunk[prompts->next++];
}

/* Reads a line without its end into the buffer, of one that is too long only the beginning.
 * 1, 0 at the end of the file, -1. */
static int read_line(struct smalti_prompts *prompts, struct smalti_error *error)
{
	prompts->length = 0;
	prompts->too_long = false;
	prompts->line++;
	int c = next_byte(prompts), last = EOF;
	bool any = c != EOF;
	for (; c != EOF && c != '\n'; c = next_byte(prompts)) {
		if (prompts->length == SMALTI_PROMPT_LINE_LIMIT) {
			prompts->too_long = true;
			continue;
		}
		if (prompts->length + 1 >= prompts->capacity && grow(prompts, error))
			return -1;
		prompts->buffer[prompts->length++] = (char)c;
		last = c;
	}
	if (prompts->failed)
		return smalti_fail_errno(error, "cannot be read");
	if (!prompts->buffer && grow(prompts, error))
		return -1;
	prompts->length -= last == '\r';
	prompts->buffer[prompts->length] = '\0';
	return any;
}

static void drop_byte_order_mark(struct smalti_prompts *prompts)
{
	if (prompts->line != 1 || prompts->length < 3 || memcmp(prompts->buffer, "\xef\xbb\xbf", 3) != 0)
		return;
	prompts->length -= 3;
	memmove(prompts->buffer, prompts->buffer + 3, prompts->length + 1);
}

static int check_line(const struct smalti_prompts *prompts, struct smalti_error *error)
{
	if (prompts->too_long)
		return smalti_fail(error, SMALTI_EFORMAT, "the line is longer than %d bytes",
				   SMALTI_PROMPT_LINE_LIMIT);
	if (memchr(prompts->buffer, '\0', prompts->length))
		return smalti_fail(error, SMALTI_EFORMAT, "the line holds a NUL byte");
	if (!smalti_utf8_valid(prompts->buffer, prompts->length))
		return smalti_fail(error, SMALTI_EFORMAT, "the line is not UTF-8");
	return 0;
}

static int parse_line(const struct smalti_prompts *prompts, struct smalti_prompt_line *line,
		      struct smalti_error *error)
{
	if (check_line(prompts, error))
		return -1;
	if (prompts->format == JSON_LINES)
		return smalti_prompt_parse_json(prompts->buffer, prompts->length, line, error);
	line->prompt = smalti_format(error, "%s", prompts->buffer);
	return line->prompt ? 0 : -1;
}

enum smalti_prompts_status smalti_prompts_next(struct smalti_prompts *prompts,
					       struct smalti_prompt_line *line, struct smalti_error *error)
{
	*line = (struct smalti_prompt_line){0};
	size_t blank;
	do {
		int status = read_line(prompts, error);
		if (status == 0)
			return SMALTI_PROMPTS_END;
		if (status < 0) {
			smalti_error_prefix(error, "%s", prompts->path);
			return SMALTI_PROMPTS_FAILED;
		}
		drop_byte_order_mark(prompts);
		blank = strspn(prompts->buffer, " \t\r\v\f");
	} while (blank == prompts->length && !prompts->too_long);
	if (prompts->format == UNKNOWN)
		prompts->format = prompts->buffer[blank] == '{' ? JSON_LINES : TEXT;
	int status = parse_line(prompts, line, error);
	if (status) {
		smalti_prompt_line_free(line);
		smalti_error_prefix(error, "%s:%" PRId64, prompts->path, prompts->line);
	}
	line->line = prompts->line;
	return status ? SMALTI_PROMPTS_BAD : SMALTI_PROMPTS_LINE;
}

void smalti_prompt_line_free(struct smalti_prompt_line *line)
{
	free(line->id);
	free(line->prompt);
	free(line->negative);
	free(line->scheduler);
	*line = (struct smalti_prompt_line){0};
}

int smalti_check_id(const char *id, struct smalti_error *error)
{
	size_t length = strlen(id);
	if (length < 1 || length > 200)
		return smalti_fail(error, SMALTI_EFORMAT, "\"id\" should have 1 to 200 bytes, found %zu",
				   length);
	if (id[0] == '.' || strchr(id, '/'))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "\"id\" names a file: neither a '/' nor a leading '.' may be in it, found \"%s\"", id);
	for (const unsigned char *c = (const unsigned char *)id; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0)) /* U+0080 to U+009F */
			return smalti_fail(error, SMALTI_EFORMAT, "\"id\" holds a control character: \"%s\"",
					   id);
	return 0;
}
