/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <dirent.h>

/* Closes what is not NULL. */
static inline void closedir_scoped(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}
static inline void fclose_scoped(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

/* Opens a regular file and tells its size; -1 with an error for anything else. */
int smalti_open_regular(const char *path, int64_t *size, struct smalti_error *error);
/* Opens a regular file as a stream to read; NULL with an error. */
FILE *smalti_open_stream(const char *path, int64_t *size, struct smalti_error *error);

/* A regular file mapped read-only. An empty file has size 0 and data NULL. If the file loses bytes meanwhile,
 * because it is cut short or the disk fails, reads raise SIGBUS. A handler that the first map installs then
 * makes all of the map zeros and marks it as lost: readers check that afterwards. Other causes of SIGBUS go
 * to the previous handler. */
struct smalti_map {
	const void *data;
	int64_t size;
};

int smalti_map_open(struct smalti_map *map, const char *path, struct smalti_error *error);
void smalti_map_close(struct smalti_map *map);

/* Tells whether bytes could not be read: what was read since the map was opened may be zeros. Any thread. */
bool smalti_map_is_lost(const struct smalti_map *map);
/* Fails if the map is lost, or if the file's size or modification time has changed since it was opened; then
 * it stays lost. The error replaces earlier ones, which may be consequences. A file that was replaced or
 * removed has not changed. Any thread. */
int smalti_map_check(const struct smalti_map *map, struct smalti_error *error);

/* Frees the process's memory of the whole pages in [data, data + bytes); later reads come from the file
 * again. Ignores memory that is no open map. Any thread. */
void smalti_map_drop(const void *data, int64_t bytes);
/* Begins to read the missing parts of that range, without waiting. */
void smalti_map_read_ahead(const void *data, int64_t bytes);

/* Reads a whole regular file of at most `limit` bytes, with a NUL after it. Free with free(). */
char *smalti_file_read(const char *path, size_t limit, size_t *length, struct smalti_error *error);

/* Reads the first line of a file without a size, as in /proc and /sys, without its end; else "": false. */
bool smalti_read_line(const char *path, char *line, int size);

/* Makes an unnamed file in the directory, to write and read: the system frees it when it is closed, however
 * the program ends. -1 with an error. */
int smalti_open_unlinked(const char *directory, struct smalti_error *error);

/* Returns 1 if something has that name, 0 if nothing has, -1 with an error if that cannot be determined. */
int smalti_find_file(const char *path, struct smalti_error *error);
/* Does as smalti_find_file() for a name in a directory. */
int smalti_find_in(const char *directory, const char *name, struct smalti_error *error);
/* Tells whether a directory has that name. */
bool smalti_is_directory(const char *path);
/* Makes the directory unless it exists; its parent must exist. */
int smalti_make_directory(const char *path, struct smalti_error *error);
/* Returns the directory for temporary files: $TMPDIR, or /tmp. */
const char *smalti_temporary_directory(void);
/* Makes a new directory there, named `name`…; NULL with an error. Remove it, and free the path with
 * free(). */
char *smalti_make_temporary_directory(const char *name, struct smalti_error *error);
/* Removes the directory with all its contents, as far as possible. */
void smalti_remove_directory(const char *path);
/* Returns the directory of a path's last name; NULL with an error. Free with free(). */
char *smalti_directory_of(const char *path, struct smalti_error *error);
/* Reads `bytes` bytes from `offset`, or up to the file's end. Returns the bytes read, -1 with errno. */
int64_t smalti_read_at(int fd, void *to, int64_t bytes, int64_t offset);
/* Writes all bytes: 0, or -1 with errno. */
int smalti_write_at(int fd, const void *data, int64_t bytes, int64_t offset);

/* Synchronises the directory: names made, changed or removed in it are on the disk afterwards. */
int smalti_sync_directory(const char *path, struct smalti_error *error);

/* A file that appears under its name complete, on the disk, or not at all. It is written as
 * `.NAME.PROCESS-COUNTER.part` (base/process.h) in the same directory. It replaces an existing regular file;
 * a directory, device or pipe of that name is refused at once. "-" is the standard output, which is only
 * flushed. */
struct smalti_writer;

struct smalti_writer *smalti_writer_open(const char *path, struct smalti_error *error);
/* Returns the stream to write to. The commit checks its error flag, so single writes need no check. */
FILE *smalti_writer_stream(struct smalti_writer *writer);
/* Flushes, syncs, closes and renames the file, and syncs the directory. On failure the name refers to what it
 * did before, or, if only the directory was not synced, to the complete new file: removing that would lose
 * the old file, too. Frees the writer. */
int smalti_writer_commit(struct smalti_writer *writer, struct smalti_error *error);
/* Puts what was written so far on the disk, so that the commit takes less time. */
int smalti_writer_sync(struct smalti_writer *writer, struct smalti_error *error);
/* Commits without both fsyncs, for many small files: the caller syncs the file system (syncfs) before it
 * relies on them. */
int smalti_writer_place(struct smalti_writer *writer, struct smalti_error *error);
/* Removes the unfinished file and frees the writer; NULL is allowed. */
void smalti_writer_abort(struct smalti_writer *writer);

/* Removes unfinished files of dead processes in the directory, with `deep` also in all directories inside:
 * this machine's at once, those of other machines or containers a day after the last write. */
void smalti_writer_clean(const char *directory, bool deep);
