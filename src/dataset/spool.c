/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "dataset/dataset_format.h"

#include <poll.h>
#include <sys/statvfs.h>
#include <zlib.h>

enum { CHUNK = 1 << 20, WAIT_MILLISECONDS = 200, UNIT = 512, GZIP = 16 };

/* A stream on its way into the spool. */
struct copy {
	struct smalti_spool *to;
	int from;
	const char *name;
	bool (*on_progress)(void *user, double share);
	void *user;
	unsigned char *chunk, *plain; /* as it comes; decompressed */
	int64_t read;
	bool packed, whole; /* it is gzip's; and at the end of a member of it */
	z_stream stream;
};

bool smalti_is_gzip(const void *start, size_t length)
{
	const unsigned char *bytes = start;
	return length >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static int check(const struct copy *c, struct smalti_error *error)
{
	if (c->on_progress && !c->on_progress(c->user, 0))
		return smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped while it was read", c->name);
	if (c->to->bytes > c->to->limit)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: more than %lld bytes%s, half of what is free in %s: name files "
				   "%s, or set TMPDIR to a larger place",
				   c->name, (long long)c->to->limit, c->packed ? " when decompressed" : "",
				   smalti_temporary_directory(),
				   c->packed ? "that are not compressed" : "instead");
	return 0;
}

static int keep(const struct copy *c, const unsigned char *data, int64_t count, struct smalti_error *error)
{
	struct smalti_spool *to = c->to;
	to->bytes += count;
	if (check(c, error) < 0)
		return -1;
	if (smalti_write_at(to->file, data, count, to->bytes - count) == 0)
		return 0;
	return smalti_fail_errno(error, "%s: cannot be kept in %s ($TMPDIR)", c->name,
				 smalti_temporary_directory());
}

static int fail_packed(const struct copy *c, int status, struct smalti_error *error)
{
	if (status == Z_MEM_ERROR)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory to decompress it", c->name);
	return smalti_fail(error, SMALTI_EFORMAT,
			   "%s: what gzip compressed is damaged in front of byte %lld: %s", c->name,
			   (long long)(c->read - c->stream.avail_in),
			   c->stream.msg ? c->stream.msg : "it needs a dictionary");
}

/* Begins another member; zeros behind a member are padding. */
static void begin_member(struct copy *c)
{
	z_stream *stream = &c->stream;
	for (; stream->avail_in > 0 && *stream->next_in == 0; stream->avail_in--)
		stream->next_in++;
	c->whole = stream->avail_in == 0;
	if (!c->whole)
		inflateReset(stream);
}

static int keep_packed(struct copy *c, int64_t got, struct smalti_error *error)
{
	z_stream *stream = &c->stream;
	stream->next_in = c->chunk;
	stream->avail_in = (uInt)got;
	do {
		if (c->whole)
			begin_member(c);
		stream->next_out = c->plain;
		stream->avail_out = CHUNK;
		const int status = c->whole ? Z_BUF_ERROR : inflate(stream, Z_NO_FLUSH);
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return fail_packed(c, status, error);
		c->whole = c->whole || status == Z_STREAM_END;
		if (keep(c, c->plain, CHUNK - (int64_t)stream->avail_out, error) < 0)
			return -1;
	} while (stream->avail_in > 0 || stream->avail_out == 0);
	return 0;
}

static int begin_packed(struct copy *c, struct smalti_error *error)
{
	c->packed = true;
	c->plain = smalti_calloc(CHUNK, 1, error);
	if (!c->plain)
		return -1;
	const int status = inflateInit2(&c->stream, MAX_WBITS + GZIP);
	return status == Z_OK ? 0 : fail_packed(c, status, error);
}

/* Copies the next bytes: 1; 0 at the end; -1. A signal or some time ends the waiting, so that `on_progress`
 * is asked. */
static int copy_chunk(struct copy *c, struct smalti_error *error)
{
	struct pollfd wait = {.fd = c->from, .events = POLLIN};
	const int ready = poll(&wait, 1, WAIT_MILLISECONDS);
	ssize_t got = -1;
	if (ready > 0)
		got = read(c->from, c->chunk, CHUNK);
	if (got < 0 && (ready == 0 || errno == EINTR || errno == EAGAIN))
		return check(c, error) < 0 ? -1 : 1;
	if (got < 0)
		return smalti_fail_errno(error, "%s: cannot be read", c->name);
	if (got == 0 && c->packed && !c->whole)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%s: what gzip compressed is cut short at byte %lld", c->name,
				   (long long)c->read);
	if (c->read == 0 && smalti_is_gzip(c->chunk, (size_t)got) && begin_packed(c, error) < 0)
		return -1;
	c->read += got;
	const int status = c->packed ? keep_packed(c, got, error) : keep(c, c->chunk, got, error);
	return status < 0 ? -1 : got > 0;
}

static int64_t half_of_free(void)
{
	struct statvfs info;
	if (statvfs(smalti_temporary_directory(), &info) < 0)
		return INT64_MAX;
	return (int64_t)(info.f_bavail / 2 * info.f_frsize);
}

static int open_spool(struct smalti_spool *spool, struct smalti_error *error)
{
	if (!spool->limit)
		spool->limit = half_of_free();
	spool->file = smalti_open_unlinked(smalti_temporary_directory(), error);
	snprintf(spool->path, sizeof(spool->path), "/proc/self/fd/%d", spool->file);
	return spool->file < 0 ? -1 : 0;
}

int smalti_spool_add(struct smalti_spool *spool, int from, const char *name,
		     bool (*on_progress)(void *user, double share), void *user, struct smalti_error *error)
{
	struct copy copy = {
	    .to = spool, .from = from, .name = name, .on_progress = on_progress, .user = user};
	if (spool->file < 0 && open_spool(spool, error) < 0)
		return -1;
	spool->first = spool->bytes = (spool->bytes + UNIT - 1) / UNIT * UNIT;
	copy.chunk = smalti_calloc(CHUNK, 1, error);
	int status = copy.chunk ? 1 : -1;
	while (status > 0)
		status = copy_chunk(&copy, error);
	if (copy.packed)
		inflateEnd(&copy.stream);
	free(copy.chunk);
	free(copy.plain);
	return status;
}
