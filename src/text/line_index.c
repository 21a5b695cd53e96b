/* SPDX-License-Identifier: Apache-2.0 */
#include "text/line_index.h"
#include "base/file.h"

#include <xxhash.h>

/* Notes where the next line begins. A full index keeps every second line. */
static void add_line(struct smalti_line_index *index, int64_t start)
{
	const int64_t line = index->lines++;
	if (line % index->step)
		return;
	if (line / index->step == SMALTI_LINE_STARTS) {
		index->step *= 2;
		for (int64_t i = 0; i < SMALTI_LINE_STARTS / 2; i++)
			index->starts[i] = index->starts[2 * i];
	}
	index->starts[line / index->step] = start;
}

/* Reads a block that begins at an offset; *begins: so does a line. */
static void read_block(struct smalti_line_index *index, const char *block, int64_t bytes, int64_t offset,
		       bool *begins)
{
	for (int64_t at = 0; at < bytes;) {
		if (*begins)
			add_line(index, offset + at);
		const char *end = memchr(block + at, '\n', (size_t)(bytes - at));
		*begins = end;
		at = end ? end - block + 1 : bytes;
	}
}

static int read_file(struct smalti_line_index *index, int fd, const char *path, XXH3_state_t *state,
		     struct smalti_error *error)
{
	enum { BLOCK = 1 << 20 };
	bool begins = true;
	SCOPED(free) char *block = smalti_aligned_alloc(BLOCK, 1, error);
	if (!block)
		return -1;
	for (int64_t offset = 0, got = 1; got > 0; offset += got) {
		got = smalti_read_at(fd, block, BLOCK, offset);
		if (got < 0)
			return smalti_fail_errno(error, "%s: cannot be read", path);
		XXH3_64bits_update(state, block, (size_t)got);
		read_block(index, block, got, offset, &begins);
	}
	return smalti_line_index_check(index, fd, path, error);
}

int smalti_line_index_make(struct smalti_line_index *index, int fd, const char *path,
			   struct smalti_error *error)
{
	index->lines = 0;
	index->step = 1;
	if (fstat(fd, &index->file))
		return smalti_fail_errno(error, "%s: cannot be examined", path);
	if (!S_ISREG(index->file.st_mode))
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: expected a regular file, which can be read "
				   "from any line on",
				   path);
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	XXH3_64bits_reset(state);
	const int status = read_file(index, fd, path, state, error);
	index->digest = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return status;
}

int smalti_line_index_check(const struct smalti_line_index *index, int fd, const char *path,
			    struct smalti_error *error)
{
	struct stat now;
	if (fstat(fd, &now))
		return smalti_fail_errno(error, "%s: cannot be examined", path);
	if (now.st_size == index->file.st_size && now.st_mtim.tv_sec == index->file.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == index->file.st_mtim.tv_nsec)
		return 0;
	return smalti_fail(error, SMALTI_EIO, "%s: changed while it was read: give this command again", path);
}
