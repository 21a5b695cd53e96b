/* SPDX-License-Identifier: Apache-2.0 */
#include "base/offload.h"
#include "base/file.h"

#include <fcntl.h>
#include <sys/statvfs.h>

struct smalti_offload {
	char *directory;
	int file;
};

int64_t smalti_offload_space(const char *directory, struct smalti_error *error)
{
	struct statvfs disk;
	if (statvfs(directory, &disk) < 0)
		return smalti_fail(error, SMALTI_EIO, "scratch directory '%s': %s", directory,
				   strerror(errno));
	const double space = (double)disk.f_bavail * (double)disk.f_frsize;
	return space < (double)INT64_MAX ? (int64_t)space : INT64_MAX;
}

static int check_space(const char *directory, int64_t bytes, struct smalti_error *error)
{
	const int64_t space = smalti_offload_space(directory, error);
	if (space < 0 || space >= bytes)
		return space < 0 ? -1 : 0;
	return smalti_fail(
	    error, SMALTI_EIO,
	    "scratch directory '%s' has %lld MB free, and %lld MB are needed: name another one, or "
	    "allow more memory",
	    directory, (long long)(space >> 20), (long long)(bytes >> 20) + 1);
}

struct smalti_offload *smalti_offload_open(const char *directory, int64_t bytes, struct smalti_error *error)
{
	struct smalti_offload *offload = smalti_calloc(1, sizeof(*offload), error);
	if (!offload)
		return NULL;
	offload->file = -1;
	offload->directory = smalti_format(error, "%s", directory);
	if (offload->directory) {
		offload->file = smalti_open_unlinked(directory, error);
		if (offload->file >= 0 && check_space(directory, bytes, error) == 0)
			return offload;
	}
	smalti_offload_close(offload);
	return NULL;
}

void smalti_offload_close(struct smalti_offload *offload)
{
	if (!offload)
		return;
	if (offload->file >= 0)
		close(offload->file);
	free(offload->directory);
	free(offload);
}

static int refuse(const struct smalti_offload *offload, const char *done, const char *cause,
		  struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EIO,
			   "scratch directory '%s' cannot be %s: %s: name another one, or allow more memory",
			   offload->directory, done, cause);
}

int smalti_offload_write(void *user, int64_t offset, int64_t bytes, const void *data,
			 struct smalti_error *error)
{
	const struct smalti_offload *offload = user;
	if (smalti_write_at(offload->file, data, bytes, offset) == 0)
		return 0;
	return refuse(offload, "written", strerror(errno), error);
}

int smalti_offload_read(void *user, int64_t offset, int64_t bytes, bool last, void *data,
			struct smalti_error *error)
{
	const struct smalti_offload *offload = user;
	const int64_t got = smalti_read_at(offload->file, data, bytes, offset);
	if (got < bytes)
		return refuse(offload, "read", got < 0 ? strerror(errno) : "the file was truncated", error);
	if (last)
		smalti_offload_drop(offload, offset, bytes);
	return 0;
}

void smalti_offload_drop(const struct smalti_offload *offload, int64_t offset, int64_t bytes)
{
	fallocate(offload->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

int smalti_offload_sync(const struct smalti_offload *offload, struct smalti_error *error)
{
	return fdatasync(offload->file) == 0 ? 0 : refuse(offload, "written", strerror(errno), error);
}
