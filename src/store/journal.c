/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "store/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { LINE_START = SMALTI_HEX_DIGITS + 1 }; /* where the JSON begins */

char *smalti_journal_path(const char *directory, const struct smalti_shard_id *id, struct smalti_error *error)
{
	char name[SMALTI_SHARD_NAME];
	smalti_shard_name(id, name);
	return smalti_format(error, "%s/%s", directory, name);
}

static int read_name(const cJSON *object, const char *key, enum smalti_json_need need,
		     struct smalti_shard_id *id, struct smalti_error *error)
{
	const char *name = NULL;
	if (smalti_json_string(object, key, need, &name, error))
		return -1;
	if (name && !smalti_shard_name_parse(name, id))
		return smalti_fail(error, SMALTI_EFORMAT, "\"%s\" is \"%.60s\", no name of a shard", key,
				   name);
	return 0;
}

static int read_commit(const cJSON *object, struct smalti_journal_entry *entry, struct smalti_error *error)
{
	static const double LATEST = 1e12;
	const char *digest;
	int64_t rows;
	struct smalti_shard_id replaces = {.remake = -1};
	if (read_name(object, "file", SMALTI_JSON_REQUIRED, &entry->id, error) ||
	    smalti_json_int(object, "rows", SMALTI_JSON_REQUIRED, 0, SMALTI_ITEMS_MAX, &rows, error) ||
	    smalti_json_int(object, "failures", SMALTI_JSON_REQUIRED, 0, rows, &entry->failures, error) ||
	    smalti_json_int(object, "reasons", SMALTI_JSON_REQUIRED, entry->failures, INT64_MAX,
			    &entry->reasons, error) ||
	    smalti_json_int(object, "bytes", SMALTI_JSON_REQUIRED, 0, INT64_MAX, &entry->bytes, error) ||
	    smalti_json_string(object, "xxh3", SMALTI_JSON_REQUIRED, &digest, error) ||
	    smalti_json_double(object, "time", SMALTI_JSON_REQUIRED, 0, LATEST, &entry->time, error) ||
	    read_name(object, "replaces", SMALTI_JSON_OPTIONAL, &replaces, error))
		return -1;
	if (rows != entry->id.end - entry->id.first)
		return smalti_fail(error, SMALTI_EFORMAT, "its name and its %" PRId64 " rows differ", rows);
	if (!smalti_hex_parse(digest, &entry->digest) || digest[SMALTI_HEX_DIGITS])
		return smalti_fail(error, SMALTI_EFORMAT, "\"xxh3\" is \"%.60s\", no checksum", digest);
	entry->replaces = replaces.remake;
	return 0;
}

/* A line without its end. */
static int parse(const char *line, size_t length, struct smalti_journal_entry *entry,
		 struct smalti_error *error)
{
	uint64_t digest;
	if (length < LINE_START || !smalti_hex_parse(line, &digest) || line[LINE_START - 1] != ' ' ||
	    XXH3_64bits(line + LINE_START, length - LINE_START) != digest)
		return smalti_fail(error, SMALTI_ECORRUPT, "its checksum does not fit");
	cJSON *object = smalti_json_parse(line + LINE_START, length - LINE_START, error);
	if (!object)
		return -1;
	entry->drop = cJSON_HasObjectItem(object, "drop");
	const int status = entry->drop ? read_name(object, "drop", SMALTI_JSON_REQUIRED, &entry->id, error)
				       : read_commit(object, entry, error);
	cJSON_Delete(object);
	return status;
}

static int add(struct smalti_journal *journal, const struct smalti_journal_entry *entry,
	       struct smalti_error *error)
{
	if (journal->count == journal->capacity) {
		const int64_t capacity = journal->capacity ? 2 * journal->capacity : 64;
		struct smalti_journal_entry *entries = smalti_calloc(capacity, sizeof(*entries), error);
		if (!entries)
			return -1;
		if (journal->count)
			memcpy(entries, journal->entries, (size_t)journal->count * sizeof(*entries));
		free(journal->entries);
		journal->entries = entries;
		journal->capacity = capacity;
	}
	journal->entries[journal->count++] = *entry;
	return 0;
}

static void ignore(void *user, int64_t line, const char *what)
{
	(void)user, (void)line, (void)what;
}

const struct smalti_journal_watch smalti_journal_ignore = {ignore, NULL};

static int report(const struct smalti_journal_watch *on_progress, const char *directory, int64_t line,
		  const char *what, struct smalti_error *error)
{
	if (!on_progress)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "%s/journal: line %" PRId64 ": %s; `smalti verify --repair` finds out "
				   "which items have to be made again",
				   directory, line, what);
	on_progress->damaged(on_progress->user, line, what);
	return 0;
}

/* The lines of a text that are whole; what follows the last of them is `torn`. */
static int read_lines(struct smalti_journal *journal, const char *directory, const char *text, size_t length,
		      const struct smalti_journal_watch *on_progress, struct smalti_error *error)
{
	size_t at = 0;
	for (const char *end; (end = memchr(text + at, '\n', length - at));) {
		const size_t line = (size_t)(end - text) - at;
		struct smalti_journal_entry entry = {.line = journal->lines + 1};
		struct smalti_error cause = SMALTI_NO_ERROR;
		if (parse(text + at, line, &entry, &cause)) {
			/* After a loss of power a file may be as long as it should be, but zero. */
			if (at + line + 1 == length && memchr(text + at, '\0', line))
				break;
			if (cause.code == SMALTI_ENOMEM)
				return smalti_fail(error, cause.code, "%s", cause.message);
			if (report(on_progress, directory, entry.line, cause.message, error))
				return -1;
		} else if (add(journal, &entry, error)) {
			return -1;
		}
		journal->lines++;
		at += line + 1;
	}
	journal->bytes += (int64_t)at;
	journal->torn = (int64_t)(length - at);
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct smalti_journal_entry *x = a, *y = b;
	if (x->id.first != y->id.first)
		return x->id.first < y->id.first ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* Takes an entry in behind those that were settled before. */
static int settle_one(struct smalti_journal *journal, const char *directory,
		      struct smalti_journal_entry entry, const struct smalti_journal_watch *on_progress,
		      struct smalti_error *error)
{
	struct smalti_journal_entry *last = journal->count ? &journal->entries[journal->count - 1] : NULL;
	const bool same = last && last->id.first == entry.id.first && last->id.end == entry.id.end;
	if (entry.drop) {
		journal->count -= same && last->id.remake == entry.id.remake;
	} else if (same && last->id.remake == entry.replaces) {
		*last = entry;
	} else if (last && last->id.end > entry.id.first) {
		char name[SMALTI_SHARD_NAME], what[160];
		smalti_shard_name(&last->id, name);
		snprintf(what, sizeof(what), "its items overlap with those of %s (line %" PRId64 ")", name,
			 last->line);
		return report(on_progress, directory, entry.line, what, error);
	} else {
		journal->entries[journal->count++] = entry;
	}
	return 0;
}

/* Plays what was read: each shard's lines in their order. */
static int settle(struct smalti_journal *journal, const char *directory,
		  const struct smalti_journal_watch *on_progress, struct smalti_error *error)
{
	const int64_t count = journal->count;
	if (count)
		qsort(journal->entries, (size_t)count, sizeof(*journal->entries), by_first);
	journal->count = 0;
	int status = 0;
	for (int64_t i = 0; i < count && status == 0; i++)
		status = settle_one(journal, directory, journal->entries[i], on_progress, error);
	return status;
}

static int read_rest(int fd, int64_t from, int64_t size, char *text)
{
	for (int64_t done = 0; done < size;) {
		const ssize_t got = pread(fd, text + done, (size_t)(size - done), from + done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = got ? errno : EIO; /* it was cut short meanwhile */
			return -1;
		}
		done += got;
	}
	return 0;
}

static int read_open(struct smalti_journal *journal, int fd, const char *directory,
		     const struct smalti_journal_watch *on_progress, struct smalti_error *error)
{
	struct stat info;
	if (fstat(fd, &info))
		return smalti_fail_errno(error, "%s/journal: cannot be examined", directory);
	if (info.st_dev != journal->device || info.st_ino != journal->inode ||
	    info.st_size < journal->bytes) {
		smalti_journal_free(journal);
		journal->device = info.st_dev;
		journal->inode = info.st_ino;
	}
	const int64_t size = info.st_size - journal->bytes;
	journal->torn = 0;
	if (size == 0)
		return 0;
	char *text = smalti_calloc(size, 1, error);
	if (!text)
		return -1;
	int status = 0;
	if (read_rest(fd, journal->bytes, size, text))
		status = smalti_fail_errno(error, "%s/journal: cannot be read", directory);
	else if (read_lines(journal, directory, text, (size_t)size, on_progress, error) ||
		 settle(journal, directory, on_progress, error))
		status = -1;
	free(text);
	if (status)
		smalti_journal_free(journal); /* the next time, from the start */
	return status;
}

int smalti_journal_read(struct smalti_journal *journal, const char *directory,
			const struct smalti_journal_watch *on_progress, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/journal", directory);
	if (!path)
		return -1;
	int64_t size;
	const int fd = smalti_open_regular(path, &size, error);
	free(path);
	if (fd < 0)
		return -1;
	const int status = read_open(journal, fd, directory, on_progress, error);
	close(fd);
	return status;
}

void smalti_journal_free(struct smalti_journal *journal)
{
	free(journal->entries);
	*journal = (struct smalti_journal){0};
}

static char *print(const struct smalti_journal_entry *entry, const char *reason, struct smalti_error *error)
{
	char name[SMALTI_SHARD_NAME], digest[SMALTI_HEX_DIGITS + 1];
	smalti_shard_name(&entry->id, name);
	cJSON *object = cJSON_CreateObject();
	if (entry->drop) {
		cJSON_AddStringToObject(object, "drop", name);
		cJSON_AddStringToObject(object, "reason", reason);
	} else {
		smalti_hex_print(entry->digest, digest);
		cJSON_AddStringToObject(object, "file", name);
		cJSON_AddNumberToObject(object, "rows", (double)(entry->id.end - entry->id.first));
		cJSON_AddNumberToObject(object, "failures", (double)entry->failures);
		cJSON_AddNumberToObject(object, "reasons", (double)entry->reasons);
		cJSON_AddNumberToObject(object, "bytes", (double)entry->bytes);
		cJSON_AddStringToObject(object, "xxh3", digest);
		if (entry->replaces >= 0) {
			struct smalti_shard_id old = entry->id;
			old.remake = entry->replaces;
			smalti_shard_name(&old, name);
			cJSON_AddStringToObject(object, "replaces", name);
		}
	}
	cJSON_AddNumberToObject(object, "time", entry->time);
	char *json = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!json) {
		smalti_fail(error, SMALTI_ENOMEM, "no memory for a line of the journal");
		return NULL;
	}
	smalti_hex_print(XXH3_64bits(json, strlen(json)), digest);
	char *line = smalti_format(error, "%s %s\n", digest, json);
	free(json);
	return line;
}

static int write_fully(int fd, const char *text, size_t size, int64_t at)
{
	for (size_t done = 0; done < size;) {
		const ssize_t put = pwrite(fd, text + done, size - done, at + (int64_t)done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			errno = put ? errno : ENOSPC;
			return -1;
		}
		done += (size_t)put;
	}
	return 0;
}

/* As it would be read from the file, which might fail: the next line would then be written in its place. */
static int take(struct smalti_journal *journal, const char *directory, const char *line,
		struct smalti_error *error)
{
	const struct smalti_journal_watch *on_progress =
	    &smalti_journal_ignore; /* who reads it next will say it */
	if (read_lines(journal, directory, line, strlen(line), on_progress, error) == 0 &&
	    settle(journal, directory, on_progress, error) == 0)
		return 0;
	smalti_journal_free(journal);
	return -1;
}

static int append_open(const struct smalti_journal *journal, int fd, const char *line)
{
	if (journal->torn && ftruncate(fd, journal->bytes))
		return -1;
	if (write_fully(fd, line, strlen(line), journal->bytes) == 0 && fsync(fd) == 0)
		return 0;
	const int cause = errno;
	/* Who comes next must not find what was not promised to be on the disk. */
	if (ftruncate(fd, journal->bytes) == 0)
		fsync(fd);
	errno = cause;
	return -1;
}

int smalti_journal_append(struct smalti_journal *journal, const char *directory,
			  const struct smalti_journal_entry *entry, const char *reason,
			  struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/journal", directory);
	char *line = path ? print(entry, reason, error) : NULL;
	int status = -1;
	if (line) {
		const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
		status = fd < 0 ? -1 : append_open(journal, fd, line);
		if (status)
			smalti_fail_errno(error, "%s: cannot be written", path);
		else
			status = take(journal, directory, line, error);
		if (fd >= 0)
			close(fd);
	}
	free(line);
	free(path);
	return status;
}

static int write_live(const struct smalti_journal *journal, FILE *stream, struct smalti_error *error)
{
	for (int64_t i = 0; i < journal->count; i++) {
		struct smalti_journal_entry entry = journal->entries[i];
		entry.replaces = -1;
		char *line = print(&entry, NULL, error);
		if (!line)
			return -1;
		fputs(line, stream);
		free(line);
	}
	return 0;
}

int smalti_journal_rewrite(struct smalti_journal *journal, const char *directory, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/journal", directory);
	struct smalti_writer *writer = path ? smalti_writer_open(path, error) : NULL;
	free(path);
	if (!writer)
		return -1;
	if (write_live(journal, smalti_writer_stream(writer), error)) {
		smalti_writer_abort(writer);
		return -1;
	}
	if (smalti_writer_commit(writer, error))
		return -1;
	smalti_journal_free(journal);
	return smalti_journal_read(journal, directory, NULL, error);
}

bool smalti_journal_covers(const struct smalti_journal *journal, int64_t items)
{
	int64_t at = 0;
	for (int64_t i = 0; i < journal->count && journal->entries[i].id.first == at; i++)
		at = journal->entries[i].id.end;
	return at >= items;
}

int64_t smalti_journal_within(const struct smalti_journal *journal, int64_t first, int64_t end, int64_t *from)
{
	int64_t low = 0, high = journal->count;
	while (low < high) { /* the first that ends behind `first` */
		const int64_t middle = low + (high - low) / 2;
		if (journal->entries[middle].id.end <= first)
			low = middle + 1;
		else
			high = middle;
	}
	*from = low;
	while (low < journal->count && journal->entries[low].id.first < end)
		low++;
	return low;
}

bool smalti_journal_names(const struct smalti_journal *journal, const struct smalti_journal_entry *entry)
{
	int64_t from;
	return smalti_journal_within(journal, entry->id.first, entry->id.end, &from) == from + 1 &&
	       journal->entries[from].id.end == entry->id.end &&
	       journal->entries[from].digest == entry->digest;
}
