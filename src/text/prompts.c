/* SPDX-License-Identifier: Apache-2.0 */
#include "text/prompts.h"
#include "base/byte_reader.h"
#include "base/json_fields.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <poll.h>

#define BLANKS " \t\r\v\f"

enum format { UNKNOWN, TEXT, JSON_LINES, JSON_ARRAY };

struct smalti_prompts {
	char *path;
	enum format format;
	int64_t line; /* number of the last one that was read */
	struct smalti_byte_reader reader;
};

struct smalti_prompts *smalti_prompts_open(const char *path, struct smalti_error *error)
{
	bool standard = strcmp(path, "-") == 0;
	struct smalti_prompts *prompts = smalti_calloc(1, sizeof(*prompts), error);
	if (!prompts)
		return NULL;
	prompts->path = smalti_format(error, "%s", standard ? "standard input" : path);
	prompts->reader.limit = SMALTI_PROMPT_LINE_LIMIT;
	prompts->reader.file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (prompts->reader.file < 0)
		smalti_fail_errno(error, "%s: cannot be opened", path);
	if (prompts->path && prompts->reader.file >= 0)
		return prompts;
	smalti_prompts_close(prompts);
	return NULL;
}

void smalti_prompts_close(struct smalti_prompts *prompts)
{
	if (!prompts)
		return;
	if (prompts->reader.file > STDIN_FILENO)
		close(prompts->reader.file);
	smalti_byte_reader_free(&prompts->reader);
	free(prompts->path);
	free(prompts);
}

int smalti_prompts_file(const struct smalti_prompts *prompts)
{
	return prompts->reader.file;
}

void smalti_prompts_seek(struct smalti_prompts *prompts, int64_t offset, int64_t line)
{
	smalti_byte_reader_seek(&prompts->reader, offset);
	prompts->line = line;
}

bool smalti_prompts_waits(const struct smalti_prompts *prompts)
{
	const struct smalti_byte_reader *reader = &prompts->reader;
	struct pollfd file = {.fd = reader->file, .events = POLLIN};
	return !memchr(reader->chunk + reader->next, '\n', reader->filled - reader->next) &&
	       poll(&file, 1, 0) == 0;
}

/* Reads up to a line that is not blank; *text becomes its beginning. 1, 0 at the end of the file, -1. */
static int read_line(struct smalti_prompts *prompts, const char **text, struct smalti_error *error)
{
	const struct smalti_byte_reader *reader = &prompts->reader;
	size_t length;
	do {
		prompts->line++;
		const int status = smalti_item_line(&prompts->reader, error);
		if (status <= 0)
			return status;
		const size_t mark = prompts->line == 1 ? smalti_utf8_mark(reader->item, reader->length) : 0;
		*text = reader->item + mark;
		length = reader->length - mark;
	} while (strspn(*text, BLANKS) == length);
	return 1;
}

static int check_line(const char *text, size_t length, struct smalti_error *error)
{
	if (memchr(text, '\0', length))
		return smalti_fail(error, SMALTI_EFORMAT, "the line holds a NUL byte");
	if (!smalti_utf8_valid(text, length))
		return smalti_fail(error, SMALTI_EFORMAT, "the line is not UTF-8");
	return 0;
}

/* Decides by the first line that is not blank. A prompt may begin with a bracket, too. */
static enum format recognise(const char *text)
{
	text += strspn(text, BLANKS);
	if (*text == '{')
		return JSON_LINES;
	if (*text != '[')
		return TEXT;
	text += 1 + strspn(text + 1, BLANKS);
	return strchr("{[\"]", *text) ? JSON_ARRAY : TEXT; /* also where the line ends */
}

/* The keys that name files: whoever sends a request to a server must not name the server's. */
#define CONFIG struct smalti_prompt_line
static const struct smalti_field file_fields[] = {
    {FIELD_TEXT("image", OPTIONAL, image)},
    {FIELD_TEXT("mask", OPTIONAL, mask)},
};

static int parse_line(struct smalti_prompts *prompts, const char *text, struct smalti_prompt_line *line,
		      struct smalti_error *error)
{
	const size_t length = (size_t)(prompts->reader.item + prompts->reader.length - text);
	if (prompts->format == UNKNOWN)
		prompts->format = recognise(text);
	if (prompts->format == JSON_ARRAY)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "a JSON array begins here; one object per line was expected: jq -c '.[]' makes "
		    "such lines of it");
	if (check_line(text, length, error))
		return -1;
	const struct smalti_prompt_fields more = {file_fields, COUNT_OF(file_fields), line};
	if (prompts->format == JSON_LINES)
		return smalti_prompt_parse_json(text, length, line, &more, error);
	line->prompt = smalti_format(error, "%s", text);
	return line->prompt ? 0 : -1;
}

enum smalti_prompts_status smalti_prompts_next(struct smalti_prompts *prompts,
					       struct smalti_prompt_line *line, struct smalti_error *error)
{
	*line = (struct smalti_prompt_line){0};
	const char *text;
	int status = read_line(prompts, &text, error);
	if (status == 0)
		return SMALTI_PROMPTS_END;
	if (status < 0 && error->code != SMALTI_EFORMAT) {
		smalti_error_prefix(error, "%s", prompts->path);
		return SMALTI_PROMPTS_FAILED;
	}
	if (status > 0)
		status = parse_line(prompts, text, line, error);
	if (status < 0) {
		smalti_prompt_line_free(line);
		smalti_error_prefix(error, "%s:%" PRId64, prompts->path, prompts->line);
	}
	line->line = prompts->line;
	if (prompts->format == JSON_ARRAY)
		return SMALTI_PROMPTS_FAILED;
	return status < 0 ? SMALTI_PROMPTS_BAD : SMALTI_PROMPTS_LINE;
}

struct smalti_request smalti_request_of_line(const struct smalti_request *defaults,
					     const struct smalti_prompt_line *line)
{
	struct smalti_request request = *defaults;
	request.prompt = line->prompt;
	request.negative_prompt = line->negative ? line->negative : request.negative_prompt;
	request.scheduler = line->scheduler ? line->scheduler : request.scheduler;
	request.lora = line->lora ? line->lora : request.lora;
	request.step_cache = line->step_cache ? line->step_cache : request.step_cache;
	request.seed = line->has_seed ? line->seed : request.seed;
	request.width = line->width ? line->width : request.width;
	request.height = line->height ? line->height : request.height;
	request.steps = line->steps ? line->steps : request.steps;
	request.images = line->images ? line->images : request.images;
	request.resolution_binning = line->has_binning ? line->binning : request.resolution_binning;
	request.guidance = line->has_guidance ? line->guidance : request.guidance;
	request.strength = line->strength > 0 ? line->strength : request.strength;
	request.keep_original = line->has_keep ? line->keep : request.keep_original;
	request.eta = line->has_eta ? line->eta : request.eta;
	return request;
}

void smalti_prompt_line_free(struct smalti_prompt_line *line)
{
	free(line->id);
	free(line->prompt);
	free(line->negative);
	free(line->scheduler);
	free(line->lora);
	free(line->step_cache);
	free(line->image);
	free(line->mask);
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
