/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

static int fail_open(const char *path, struct smalti_error *error)
{
	const int cause = errno;
	char target[1024];
	const ssize_t length = cause == ENOENT ? readlink(path, target, sizeof(target)) : -1;
	errno = cause;
	if (length < 0)
		return smalti_fail_errno(error, "%s: cannot be opened", path);
	return smalti_fail(error, SMALTI_ENOENT,
			   "%s: cannot be opened: it is a link to %.*s, which is not there", path,
			   (int)length, target);
}

/* Opens with O_NONBLOCK, so that a pipe cannot block. */
int smalti_open_regular(const char *path, int64_t *size, struct smalti_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail_open(path, error);
	struct stat info;
	if (fstat(fd, &info)) {
		smalti_fail_errno(error, "%s: cannot be examined", path);
	} else if (!S_ISREG(info.st_mode)) {
		smalti_fail(error, SMALTI_EFORMAT, "%s: a file was expected, this is %s", path,
			    S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket");
	} else {
		*size = info.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

FILE *smalti_open_stream(const char *path, int64_t *size, struct smalti_error *error)
{
	int fd = smalti_open_regular(path, size, error);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "rb");
	if (fd >= 0 && !stream) {
		smalti_fail_errno(error, "%s: cannot be opened", path);
		close(fd);
	}
	return stream;
}

int64_t smalti_read_at(int fd, void *to, int64_t bytes, int64_t offset)
{
	int64_t done = 0;
	while (done < bytes) {
		const ssize_t got = pread(fd, (char *)to + done, (size_t)(bytes - done), offset + done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += got;
	}
	return done;
}

int smalti_write_at(int fd, const void *data, int64_t bytes, int64_t offset)
{
	for (int64_t done = 0; done < bytes;) {
		const ssize_t put =
		    pwrite(fd, (const char *)data + done, (size_t)(bytes - done), offset + done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put == 0)
			errno = ENOSPC;
		if (put <= 0)
			return -1;
		done += put;
	}
	return 0;
}

char *smalti_file_read(const char *path, size_t limit, size_t *length, struct smalti_error *error)
{
	int64_t size;
	SCOPED(close) const int fd = smalti_open_regular(path, &size, error);
	if (fd < 0)
		return NULL;
	char *text = NULL;
	if ((uint64_t)size > limit)
		smalti_fail(error, SMALTI_EFORMAT, "%s: %lld bytes, at most %zu were expected", path,
			    (long long)size, limit);
	else
		text = smalti_calloc(size + 1, 1, error);
	int64_t got = text ? smalti_read_at(fd, text, size, 0) : 0;
	if (got < 0) {
		smalti_fail_errno(error, "%s: cannot be read", path);
		free(text);
		text = NULL;
	}
	*length = text ? (size_t)got : 0;
	return text;
}

bool smalti_read_line(const char *path, char *line, int size)
{
	SCOPED(fclose) FILE *stream = fopen(path, "re");
	const bool read = stream && fgets(line, size, stream);
	line[read ? strcspn(line, "\n") : 0] = '\0';
	return read;
}

/* Makes a file without a name where the file system can, else removes the name at once. */
static int open_unlinked(const char *directory, struct smalti_error *error)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	SCOPED(free) char *path = smalti_format(error, "%s/.smalti-XXXXXX", directory);
	if (!path)
		return -1;
	fd = mkstemp(path);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int smalti_open_unlinked(const char *directory, struct smalti_error *error)
{
	const int fd = open_unlinked(directory, error);
	if (fd < 0)
		smalti_fail(
		    error, SMALTI_EIO,
		    "scratch directory '%s': no file can be made there: %s; it must exist and be writable",
		    directory, strerror(errno));
	return fd;
}

bool smalti_is_directory(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int smalti_make_directory(const char *path, struct smalti_error *error)
{
	if (!mkdir(path, 0777))
		return 0;
	int cause = errno;
	if (cause == EEXIST && smalti_is_directory(path))
		return 0;
	errno = cause;
	return smalti_fail_errno(error, "%s: the directory cannot be made", path);
}

int smalti_find_file(const char *path, struct smalti_error *error)
{
	if (access(path, F_OK) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0
						   : smalti_fail_errno(error, "%s: cannot be examined", path);
}

int smalti_find_in(const char *directory, const char *name, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	return path ? smalti_find_file(path, error) : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info, (void)type, (void)walk;
	remove(path); /* the walk continues after what cannot be removed */
	return 0;
}

const char *smalti_temporary_directory(void)
{
	const char *directory = getenv("TMPDIR");
	return directory && *directory ? directory : "/tmp";
}

char *smalti_make_temporary_directory(const char *name, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/%s.XXXXXX", smalti_temporary_directory(), name);
	if (!path || mkdtemp(path))
		return path;
	smalti_fail_errno(error, "%s: no directory can be made there", path);
	free(path);
	return NULL;
}

void smalti_remove_directory(const char *path)
{
	enum { OPEN_DIRECTORIES = 8 };
	nftw(path, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

/* "a/b.png" -> "a", "/b.png" -> "/.", "b.png" -> "." */
char *smalti_directory_of(const char *path, struct smalti_error *error)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return smalti_format(error, ".");
	if (slash == path)
		return smalti_format(error, "/.");
	return smalti_format(error, "%.*s", (int)(slash - path), path);
}

int smalti_sync_directory(const char *path, struct smalti_error *error)
{
	SCOPED(close) const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = fd < 0 ? -1 : fsync(fd);
	if (status && fd >= 0 && errno == EINVAL)
		status = 0; /* this file system has no fsync of directories */
	if (status)
		smalti_fail_errno(error, "%s: the directory cannot be synchronised", path);
	return status;
}
