/* SPDX-License-Identifier: Apache-2.0
 *
 * The writes of streams are the C library's own, which tests/fault.c cannot see: streams that write to files
 * are made of functions that call its write().
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)

enum { STREAMS = 1024 };

/* What is open; fd 0: none. */
static struct stream {
	FILE *stream;
	int fd;
} streams[STREAMS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct stream *take(int fd)
{
	struct stream *found = NULL;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < STREAMS && !found; i++)
		if (!streams[i].fd)
			found = &streams[i];
	if (found)
		*found = (struct stream){NULL, fd};
	pthread_mutex_unlock(&mutex);
	return found;
}

static void give(struct stream *stream)
{
	pthread_mutex_lock(&mutex);
	*stream = (struct stream){NULL, 0};
	pthread_mutex_unlock(&mutex);
}

static ssize_t put(void *cookie, const char *data, size_t size)
{
	const struct stream *stream = cookie;
	size_t done = 0;
	while (done < size) {
		const ssize_t wrote = write(stream->fd, data + done, size - done);
		if (wrote < 0 && errno != EINTR)
			break;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return (ssize_t)done;
}

static int seek(void *cookie, off64_t *at, int whence)
{
	const struct stream *stream = cookie;
	*at = lseek(stream->fd, *at, whence);
	return *at < 0 ? -1 : 0;
}

static int end(void *cookie)
{
	struct stream *stream = cookie;
	const int fd = stream->fd;
	give(stream);
	return close(fd);
}

FILE *fdopen(int fd, const char *mode)
{
	static __typeof__(&fdopen) real;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fdopen");
	if (mode[0] == 'r')
		return real(fd, mode);
	struct stream *stream = take(fd);
	if (!stream) {
		errno = EMFILE;
		return NULL;
	}
	const cookie_io_functions_t functions = {.write = put, .seek = seek, .close = end};
	FILE *made = fopencookie(stream, mode, functions);
	stream->stream = made;
	if (!made)
		give(stream);
	return made;
}

FILE *fopen(const char *path, const char *mode)
{
	static const struct {
		char mode;
		int flags;
	} kinds[] = {
	    {'r', O_RDONLY}, {'w', O_WRONLY | O_CREAT | O_TRUNC}, {'a', O_WRONLY | O_CREAT | O_APPEND}};
	int flags = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (mode[0] == kinds[i].mode)
			flags = kinds[i].flags;
	if (strchr(mode, '+'))
		flags = (flags & ~O_WRONLY) | O_RDWR;
	const int fd = open(path, flags | O_CLOEXEC, 0666);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, mode);
	if (!stream && fd >= 0)
		close(fd);
	return stream;
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

int fileno(FILE *stream)
{
	static __typeof__(&fileno) real;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fileno");
	int fd = 0;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < STREAMS && !fd; i++)
		if (streams[i].fd && streams[i].stream == stream)
			fd = streams[i].fd;
	pthread_mutex_unlock(&mutex);
	return fd ? fd : real(stream);
}
