/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/spool.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, WAIT_MILLISECONDS = 200 };

struct spool {
	int from, to;
	const char *name;
	int64_t bytes, limit;
	bool (*on_progress)(void *user, double share);
	void *user;
	char *chunk;
};

const char *smalti_temporary_directory(void)
{
	const char *directory = getenv("TMPDIR");
	return directory && *directory ? directory : "/tmp";
}

static int write_all(const struct spool *s, int64_t count, struct smalti_error *error)
{
	for (int64_t done = 0; done < count;) {
		const ssize_t put = write(s->to, s->chunk + done, (size_t)(count - done));
		if (put < 0 && errno != EINTR)
			return smalti_fail_errno(error, "%s: cannot be kept in %s ($TMPDIR)", s->name,
						 smalti_temporary_directory());
		done += put > 0 ? put : 0;
	}
	return 0;
}

static int check(const struct spool *s, struct smalti_error *error)
{
	if (s->on_progress && !s->on_progress(s->user, 0))
		return smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped while it was read", s->name);
	if (s->bytes > s->limit)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "%s: more than %lld bytes, half of what is free in %s: name files instead, "
		    "or set TMPDIR to a larger place",
		    s->name, (long long)s->limit, smalti_temporary_directory());
	return 0;
}

/* The next bytes: 1; 0 at the end; -1. A signal or some time ends the waiting, so that `watch` is asked. */
static int copy_chunk(struct spool *s, struct smalti_error *error)
{
	struct pollfd wait = {.fd = s->from, .events = POLLIN};
	const int ready = poll(&wait, 1, WAIT_MILLISECONDS);
	ssize_t got = -1;
	if (ready > 0)
		got = read(s->from, s->chunk, CHUNK);
	if (got < 0 && (ready == 0 || errno == EINTR || errno == EAGAIN))
		return check(s, error) < 0 ? -1 : 1;
	if (got < 0)
		return smalti_fail_errno(error, "%s: cannot be read", s->name);
	s->bytes += got;
	if (check(s, error) < 0 || write_all(s, got, error) < 0)
		return -1;
	return got > 0;
}

static int64_t half_of_free(void)
{
	struct statvfs info;
	if (statvfs(smalti_temporary_directory(), &info) < 0)
		return INT64_MAX;
	return (int64_t)(info.f_bavail / 2 * info.f_frsize);
}

int smalti_spool(int from, const char *name, int64_t limit, bool (*on_progress)(void *user, double share),
		 void *user, struct smalti_error *error)
{
	struct spool s = {.from = from,
			  .name = name,
			  .limit = limit ? limit : half_of_free(),
			  .on_progress = on_progress,
			  .user = user,
			  .to = smalti_open_unlinked(smalti_temporary_directory(), error)};
	if (s.to < 0)
		return -1;
	s.chunk = smalti_calloc(CHUNK, 1, error);
	int status = s.chunk ? 1 : -1;
	while (status > 0)
		status = copy_chunk(&s, error);
	free(s.chunk);
	if (status == 0)
		return s.to;
	close(s.to);
	return -1;
}
