/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <dirent.h>

/* Of none there is none. */
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

/* A descriptor of a regular file and its size; -1 with an error for anything else. */
int smalti_open_regular(const char *path, int64_t *size, struct smalti_error *error);
/* The same as a stream to read; NULL with an error. */
FILE *smalti_open_stream(const char *path, int64_t *size, struct smalti_error *error);

/* A regular file seen as memory, read-only. An empty file has size 0 and data NULL. Where the file loses
 * bytes meanwhile, because it is cut short or the disk fails, the kernel answers a read with SIGBUS. A
 * handler that the first map installs then makes all of the map zeros and marks it as lost: whoever has read
 * asks afterwards whether that counts. Other causes of SIGBUS go to the handler that was there before. */
struct smalti_map {
	const void *data;
	int64_t size;
};

int smalti_map_open(struct smalti_map *map, const char *path, struct smalti_error *error);
void smalti_map_close(struct smalti_map *map);

/* Whether bytes could not be read: what was read since the map was opened may be zeros. Any thread. */
bool smalti_map_is_lost(const struct smalti_map *map);
/* Fails where it is lost, or where the file's size or the time of its last change is not what it was when it
 * was opened; then it stays lost. The error says so in place of what it said before, which may be a
 * consequence. A file that was replaced by another, or removed, is still what it was. Any thread. */
int smalti_map_check(const struct smalti_map *map, struct smalti_error *error);

/* Memory of this process that holds the whole pages of [data, data + bytes) is given back; what is read there
 * again comes from the file again. Nothing happens to memory that is no open map. Any thread. */
void smalti_map_drop(const void *data, int64_t bytes);
/* Begins to read what of that range is not in memory, and does not wait for it. */
void smalti_map_read_ahead(const void *data, int64_t bytes);

/* A whole regular file of at most `limit` bytes, a NUL behind it. Free with free(). */
char *smalti_file_read(const char *path, size_t limit, size_t *length, struct smalti_error *error);

/* The first line of a file that has no size, as those of /proc and /sys, without its end; else "": false. */
bool smalti_read_line(const char *path, char *line, int size);

/* A file in the directory to write and read that has no name: the system takes it back when it is closed,
 * however the program ends. -1 with an error. */
int smalti_open_unlinked(const char *directory, struct smalti_error *error);

/* 1 when something has that name, 0 when nothing has, -1 with an error when that cannot be found out. */
int smalti_find_file(const char *path, struct smalti_error *error);
/* The same of a name in a directory. */
int smalti_find_in(const char *directory, const char *name, struct smalti_error *error);
/* Makes the directory unless it is there; its parent must exist. */
int smalti_make_directory(const char *path, struct smalti_error *error);
/* The directory for what nobody looks for afterwards: $TMPDIR, or /tmp. */
const char *smalti_temporary_directory(void);
/* A new one in it whose name begins so; NULL with an error. Remove it, and free the path with free(). */
char *smalti_make_temporary_directory(const char *name, struct smalti_error *error);
/* Removes the directory with all that is in it, as far as that can be done. */
void smalti_remove_directory(const char *path);
/* The directory that a path's last name stands in; NULL with an error. Free with free(). */
char *smalti_directory_of(const char *path, struct smalti_error *error);
/* Reads so many bytes from there on, or up to the file's end: how many there were, -1 with errno. */
int64_t smalti_read_at(int fd, void *to, int64_t bytes, int64_t offset);
/* Writes all of them: 0, or -1 with errno. */
int smalti_write_at(int fd, const void *data, int64_t bytes, int64_t offset);

/* Names that were made, changed or removed in the directory are so on the disk afterwards. */
int smalti_sync_directory(const char *path, struct smalti_error *error);

/* A file that appears under its name complete, on the disk, or not at all. It is written as
 * `.NAME.PROCESS-COUNTER.part` (base/process.h) in the same directory. An existing regular file is replaced;
 * a directory, device or pipe of that name is refused at once. "-" is the standard output, which is only
 * flushed.
 */
struct smalti_writer;

struct smalti_writer *smalti_writer_open(const char *path, struct smalti_error *error);
/* Where to write. Its error flag is looked at by the commit, so writes need not be checked one by one. */
FILE *smalti_writer_stream(struct smalti_writer *writer);
/* Flush, fsync, close, rename, fsync of the directory. On failure the name stands for what it did before, or,
 * if only the directory could not be synchronised, for the complete new file: taking that away again would
 * take the one that it has replaced. Frees the writer. */
int smalti_writer_commit(struct smalti_writer *writer, struct smalti_error *error);
/* The same without both fsyncs, for many small files: the caller synchronises the file system (syncfs) before
 * it relies on them. */
int smalti_writer_place(struct smalti_writer *writer, struct smalti_error *error);
/* Leaves nothing behind and frees the writer; NULL is fine. */
void smalti_writer_abort(struct smalti_writer *writer);

/* Removes what dead processes have left unfinished in the directory, with `deep` in all directories in it
 * too: those of this machine at once, those of others, or in other containers, when nobody has written to it
 * for a day.
 */
void smalti_writer_clean(const char *directory, bool deep);
