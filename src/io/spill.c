/* SPDX-License-Identifier: Apache-2.0 */
#include "io/spill.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct smalti_spill {
	char *folder;
	int file;
};

int64_t smalti_spill_space(const char *folder, struct smalti_error *error)
{
	struct statvfs disk;
	if (statvfs(folder, &disk) < 0)
		return smalti_fail(error, SMALTI_EIO, "scratch folder '%s': %s", folder, strerror(errno));
	const double space = (double)disk.f_bavail * (double)disk.f_frsize;
	return space < (double)INT64_MAX ? (int64_t)space : INT64_MAX;
}

static int check_space(const char *folder, int64_t bytes, struct smalti_error *error)
{
	const int64_t space = smalti_spill_space(folder, error);
	if (space < 0 || space >= bytes)
		return space < 0 ? -1 : 0;
	return smalti_fail(
	    error, SMALTI_EIO,
	    "scratch folder '%s' has %lld MB free, and %lld MB are needed: name another one, or "
	    "allow more memory",
	    folder, (long long)(space >> 20), (long long)(bytes >> 20) + 1);
}

struct smalti_spill *smalti_spill_open(const char *folder, int64_t bytes, struct smalti_error *error)
{
	struct smalti_spill *spill = smalti_calloc(1, sizeof(*spill), error);
	if (!spill)
		return NULL;
	spill->file = -1;
	spill->folder = smalti_format(error, "%s", folder);
	if (spill->folder) {
		spill->file = smalti_open_nameless(folder, error);
		if (spill->file >= 0 && check_space(folder, bytes, error) == 0)
			return spill;
	}
	smalti_spill_close(spill);
	return NULL;
}

void smalti_spill_close(struct smalti_spill *spill)
{
	if (!spill)
		return;
	if (spill->file >= 0)
		close(spill->file);
	free(spill->folder);
	free(spill);
}

int smalti_spill_write(void *user, int64_t offset, int64_t bytes, const void *data,
		       struct smalti_error *error)
{
	const struct smalti_spill *spill = user;
	for (const char *from = data; bytes > 0;) {
		const ssize_t done = pwrite(spill->file, from, (size_t)bytes, offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return smalti_fail(error, SMALTI_EIO, "scratch folder '%s' cannot be written: %s",
					   spill->folder, strerror(errno));
		from += done;
		offset += done;
		bytes -= done;
	}
	return 0;
}

int smalti_spill_read(void *user, int64_t offset, int64_t bytes, bool last, void *data,
		      struct smalti_error *error)
{
	const struct smalti_spill *spill = user;
	const int64_t first = offset, all = bytes;
	for (char *to = data; bytes > 0;) {
		const ssize_t done = pread(spill->file, to, (size_t)bytes, offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return smalti_fail(error, SMALTI_EIO, "scratch folder '%s' cannot be read: %s",
					   spill->folder, done ? strerror(errno) : "the file was cut off");
		to += done;
		offset += done;
		bytes -= done;
	}
	if (last) /* not every file system can: then the space stays taken until the end */
		fallocate(spill->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first, all);
	return 0;
}
