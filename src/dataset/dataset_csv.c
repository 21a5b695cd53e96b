/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "dataset/dataset_format.h"

/* Fields that are wanted: the path, the id, the captions. */
enum { PATH, ID, CAPTIONS, WANTED = CAPTIONS + SMALTI_DATASET_CAPTIONS_MAX };

struct csv {
	struct smalti_dataset_text text;
	int separator;
	int64_t columns;
	int64_t column[WANTED]; /* of each wanted field, -1: there is none */
	char names[256];        /* of the columns, for messages */
};

/* A row's fields are one after the other in the reader's item, a NUL behind each. */
struct row {
	int64_t fields, first_line;
	struct span {
		size_t start, length;
	} wanted[WANTED];
	bool nul; /* in the field that was scanned last */
	const char *problem;
};

/* Reads to behind the closing quote. */
static void scan_quoted(struct csv *s, struct row *row)
{
	struct smalti_byte_reader *reader = &s->text.reader;
	for (;;) {
		const int byte = smalti_byte_next(reader);
		if (byte == EOF)
			row->problem = "a quote is not closed";
		if (byte == EOF || (byte == '"' && smalti_byte_peek(reader) != '"'))
			return;
		reader->next += byte == '"'; /* two stand for one */
		s->text.line += byte == '\n';
		smalti_item_add(reader, byte);
	}
}

/* Puts a field to the end of the item. Returns what ended it: the separator, '\n' or EOF. */
static int scan_field(struct csv *s, struct row *row)
{
	struct smalti_byte_reader *reader = &s->text.reader;
	const bool quoted = smalti_byte_peek(reader) == '"';
	row->nul = false;
	if (quoted) {
		reader->next++;
		scan_quoted(s, row);
	}
	for (;;) {
		int byte = smalti_byte_next(reader);
		if (byte == '\r' && (smalti_byte_peek(reader) == '\n' || smalti_byte_peek(reader) == EOF))
			byte = smalti_byte_next(reader);
		if (byte == s->separator || byte == '\n' || byte == EOF)
			return byte;
		row->nul |= byte == '\0';
		if (quoted)
			row->problem = "text behind a closing quote";
		smalti_item_add(reader, byte);
	}
}

/* Gives a wanted field its column; of a path's several names the first wins. */
static void take_name(struct csv *s, const char *name, int64_t column, int *best)
{
	for (int i = 0; smalti_dataset_path_names[i] && i < *best; i++)
		if (strcmp(name, smalti_dataset_path_names[i]) == 0) {
			*best = i;
			s->column[PATH] = column;
		}
	if (strcmp(name, smalti_dataset_id_names[0]) == 0)
		s->column[ID] = column;
	const int caption = smalti_dataset_caption_of(s->text.options, name);
	if (caption >= 0)
		s->column[CAPTIONS + caption] = column;
}

/* Puts the next row together, with `names` as the header. Returns 1, 0 at the end, or -1. */
static int scan_row(struct csv *s, struct row *row, bool names, struct smalti_error *error)
{
	struct smalti_byte_reader *reader = &s->text.reader;
	int end, best = INT32_MAX;
	if (smalti_byte_peek(reader) == EOF && !reader->cause)
		return 0;
	*row = (struct row){.first_line = s->text.line};
	smalti_item_begin(reader);
	do {
		const struct span span = {.start = reader->length};
		end = scan_field(s, row);
		const size_t length = reader->length - span.start;
		smalti_item_add(reader, '\0');
		if (names && !reader->too_long && !reader->no_memory) {
			take_name(s, reader->item + span.start, row->fields, &best);
			smalti_append(s->names, sizeof(s->names), ", ", "%s", reader->item + span.start);
		}
		for (int i = 0; i < WANTED; i++)
			if (s->column[i] == row->fields) {
				row->wanted[i] = (struct span){span.start, length};
				row->problem = row->nul ? "a NUL byte" : row->problem;
			}
		row->fields++;
	} while (end == s->separator);
	s->text.line += end == '\n';
	return smalti_item_end(reader, error) < 0 ? -1 : 1;
}

/* Reads the next row that is not blank, likewise. */
static int next_row(struct csv *s, struct row *row, struct smalti_error *error)
{
	int status;
	do
		status = scan_row(s, row, false, error);
	while (status > 0 && s->text.reader.length == 1 && !row->problem); /* one NUL */
	if (status <= 0)
		return status;
	if (row->problem)
		return smalti_fail(error, SMALTI_EFORMAT, "%s", row->problem);
	if (row->fields != s->columns)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "expected %lld fields, as in the header, found %lld",
				   (long long)s->columns, (long long)row->fields);
	return 1;
}

static struct smalti_caption_text text_of(const struct csv *s, const struct row *row, int field)
{
	const struct span *span = &row->wanted[field];
	return s->column[field] < 0 ? (struct smalti_caption_text){0}
				    : (struct smalti_caption_text){.text = s->text.reader.item + span->start,
								   .length = span->length};
}

static enum smalti_dataset_status next_csv(void *state, bool texts, struct smalti_dataset_entry *entry,
					   struct smalti_error *error)
{
	(void)texts;
	struct csv *s = state;
	struct row row;
	const int status = next_row(s, &row, error);
	if (status == 0)
		return SMALTI_DATASET_END;
	if (status < 0) {
		smalti_error_prefix(error, "line %lld", (long long)row.first_line);
		return smalti_dataset_failure(error);
	}
	entry->path = text_of(s, &row, PATH);
	entry->id = text_of(s, &row, ID);
	for (int i = 0; i < s->text.options->caption_count; i++)
		entry->captions[i] = text_of(s, &row, CAPTIONS + i);
	return SMALTI_DATASET_RECORD;
}

/* Tells whether a tab comes before the end of the line. */
static bool header_has_tab(struct smalti_byte_reader *reader)
{
	smalti_byte_peek(reader);
	for (size_t i = reader->next; i < reader->filled && reader->chunk[i] != '\n'; i++)
		if (reader->chunk[i] == '\t')
			return true;
	return false;
}

/* Checks the columns. While the key of captions is looked for, one is enough. */
static int check_columns(const struct csv *s, struct smalti_error *error)
{
	const struct smalti_dataset_options *o = s->text.options;
	const char *missing = NULL;
	int there = 0;
	if (o->images && s->column[PATH] < 0)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%s: no column of images: expected path, image, file_name or filename "
				   "in its first line, found %s",
				   s->text.source->name, s->names);
	for (int i = 0; i < o->caption_count; i++)
		if (s->column[CAPTIONS + i] < 0)
			missing = o->captions[i];
		else
			there++;
	if (!missing || (o->find_caption && there > 0))
		return 0;
	return smalti_fail(
	    error, SMALTI_EFORMAT,
	    "%s: no column of captions: expected %s in its first line, found %s; name one with "
	    "--caption-key",
	    s->text.source->name, o->find_caption ? SMALTI_CAPTION_NAMES : missing, s->names);
}

static int read_header(struct csv *s, struct smalti_error *error)
{
	struct smalti_byte_reader *reader = &s->text.reader;
	struct row row;
	static const char *const tabs[] = {".tsv", NULL};
	const char *name = s->text.source->name;
	s->separator = header_has_tab(reader) || name[smalti_dataset_stem(name, tabs)] ? '\t' : ',';
	reader->next += smalti_utf8_mark((const char *)reader->chunk, reader->filled);
	int status = scan_row(s, &row, true, error);
	if (status == 0 || (status > 0 && row.problem))
		status = smalti_fail(error, SMALTI_EFORMAT, "expected names of columns in its first line, %s",
				     status ? row.problem : "found nothing");
	if (status < 0) {
		smalti_error_prefix(error, "%s", s->text.source->name);
		return -1;
	}
	s->columns = row.fields;
	return check_columns(s, error);
}

static void *open_csv(const struct smalti_dataset_source *source, struct smalti_error *error)
{
	struct csv *s = smalti_dataset_text_open(source, sizeof(*s), error);
	if (!s)
		return NULL;
	for (int i = 0; i < WANTED; i++)
		s->column[i] = -1;
	if (read_header(s, error) == 0)
		return s;
	smalti_dataset_text_close(s);
	return NULL;
}

const struct smalti_dataset_format smalti_dataset_csv = {
    open_csv, smalti_dataset_text_close, smalti_dataset_text_tell, smalti_dataset_text_seek, next_csv};
