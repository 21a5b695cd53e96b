/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/process.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

struct smalti_writer {
	char *path;
	char *directory;
	char *part;
	FILE *stream;
};

/* NAME_MAX is 255: the rest is for the dots, the process and the counter. */
enum { NAME_KEPT = 180, ATTEMPTS = 1000 };

/* Finds this process's tag. The process may be the child of one that asked before. */
static void find_tag(char tag[SMALTI_PROCESS_TAG])
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static struct smalti_process self;
	HOLD_MUTEX(&mutex);
	if (self.pid != getpid())
		smalti_process_self(&self);
	smalti_process_tag(&self, tag);
}

static int check_target(const char *path, struct smalti_error *error)
{
	const char *slash = strrchr(path, '/');
	if (!(slash ? slash[1] : path[0]))
		return smalti_fail(error, SMALTI_EINVAL, "\"%s\": a file name was expected", path);
	struct stat info;
	if (strcmp(path, "-") != 0 && !stat(path, &info) && !S_ISREG(info.st_mode))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: exists and is %s; name a file (or - for the standard output)", path,
				   S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket");
	return 0;
}

/* Opens the first free temporary name: a file that a dead process has left does no harm. */
static int open_part(struct smalti_writer *writer, struct smalti_error *error)
{
	static atomic_uint counter;
	const char *slash = strrchr(writer->path, '/');
	const char *name = slash ? slash + 1 : writer->path;
	char tag[SMALTI_PROCESS_TAG];
	int fd = -1;
	find_tag(tag);
	for (int attempt = 0; fd < 0 && attempt < ATTEMPTS; attempt++) {
		free(writer->part);
		writer->part = smalti_format(error, "%s/.%.*s.%s-%u.part", writer->directory, NAME_KEPT, name,
					     tag, atomic_fetch_add(&counter, 1));
		if (!writer->part)
			return -1;
		fd = open(writer->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0) {
		smalti_fail_errno(error, "%s: cannot be created", writer->path);
		free(writer->part);
		writer->part = NULL;
	}
	return fd;
}

struct smalti_writer *smalti_writer_open(const char *path, struct smalti_error *error)
{
	if (check_target(path, error))
		return NULL;
	struct smalti_writer *writer = smalti_calloc(1, sizeof(*writer), error);
	if (!writer)
		return NULL;
	writer->path = smalti_format(error, "%s", path);
	if (writer->path && strcmp(path, "-") == 0) {
		writer->stream = stdout;
		return writer;
	}
	writer->directory = smalti_directory_of(path, error);
	int fd = writer->path && writer->directory ? open_part(writer, error) : -1;
	if (fd >= 0) {
		writer->stream = fdopen(fd, "wb");
		if (writer->stream)
			return writer;
		smalti_fail_errno(error, "%s: cannot be opened", path);
		close(fd);
	}
	smalti_writer_abort(writer);
	return NULL;
}

FILE *smalti_writer_stream(struct smalti_writer *writer)
{
	return writer->stream;
}

/* Closes the stream. A failed write sets its flag but loses errno: another write, even of one byte, sets
 * errno again while the disk is full. */
static int finish_stream(struct smalti_writer *writer, bool sync)
{
	FILE *stream = writer->stream;
	bool failed = ferror(stream);
	if (failed)
		fputc('\0', stream);
	errno = 0;
	failed = fflush(stream) || failed || (sync && fsync(fileno(stream)));
	int cause = errno ? errno : EIO;
	writer->stream = NULL;
	if (fclose(stream) && !failed) {
		cause = errno;
		failed = true;
	}
	errno = cause;
	return failed ? -1 : 0;
}

static int put_in_place(struct smalti_writer *writer, bool sync, struct smalti_error *error)
{
	int status = 0;
	if (writer->stream == stdout) {
		if (fflush(stdout) || ferror(stdout))
			status = smalti_fail_errno(error, "standard output: cannot be written");
	} else if (finish_stream(writer, sync)) {
		status = smalti_fail_errno(error, "%s: cannot be written", writer->path);
	} else if (rename(writer->part, writer->path)) {
		status = smalti_fail_errno(error, "%s: cannot be put in place", writer->path);
	} else {
		free(writer->part);
		writer->part = NULL;
		status = sync ? smalti_sync_directory(writer->directory, error) : 0;
	}
	smalti_writer_abort(writer);
	return status;
}

int smalti_writer_sync(struct smalti_writer *writer, struct smalti_error *error)
{
	return fflush(writer->stream) || fsync(fileno(writer->stream))
		   ? smalti_fail_errno(error, "%s: cannot be written", writer->path)
		   : 0;
}

int smalti_writer_commit(struct smalti_writer *writer, struct smalti_error *error)
{
	return put_in_place(writer, true, error);
}

int smalti_writer_place(struct smalti_writer *writer, struct smalti_error *error)
{
	return put_in_place(writer, false, error);
}

void smalti_writer_abort(struct smalti_writer *writer)
{
	if (!writer)
		return;
	if (writer->stream && writer->stream != stdout)
		fclose(writer->stream);
	if (writer->part)
		unlink(writer->part);
	free(writer->part);
	free(writer->directory);
	free(writer->path);
	free(writer);
}
