/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD: the Nth call of a kind that changes a file fails, or is where the process is
 * killed. SMALTI_FAULT is KIND:N, or KIND:N+ for the Nth and all later ones; a process may also arm itself.
 */
#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC visibility push(default)

enum call { WRITE = 1, SYNC = 2, RENAME = 4, TRUNCATE = 8, UNLINK = 16 };

static const struct kind {
	const char *name;
	int calls; /* which it counts */
	int error; /* 0: half of a write is done */
	bool kills;
} kinds[] = {
    {"write", WRITE, EIO, false},
    {"full", WRITE, ENOSPC, false},
    {"short", WRITE, 0, false},
    {"sync", SYNC, EIO, false},
    {"rename", RENAME, EIO, false},
    {"truncate", TRUNCATE, EIO, false},
    {"unlink", UNLINK, EACCES, false},
    {"undo", SYNC | TRUNCATE, EIO, false},
    {"all", WRITE | SYNC | RENAME | TRUNCATE | UNLINK, EIO, false},
    {"kill", WRITE | SYNC | RENAME | TRUNCATE | UNLINK, 0, true},
};

static const struct kind *armed;
static long wanted;
static bool lasting;
static atomic_long seen;

int test_fault_arm(const char *text)
{
	armed = NULL;
	atomic_store(&seen, 0);
	const char *colon = text ? strchr(text, ':') : NULL;
	for (size_t i = 0; colon && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i].name) == (size_t)(colon - text) &&
		    !strncmp(kinds[i].name, text, (size_t)(colon - text)))
			armed = &kinds[i];
	if (!armed)
		return -1;
	char *end;
	wanted = strtol(colon + 1, &end, 10);
	lasting = *end == '+';
	return 0;
}

long test_fault_seen(void)
{
	return atomic_load(&seen);
}

__attribute__((constructor)) static void arm_by_environment(void)
{
	test_fault_arm(getenv("SMALTI_FAULT"));
}

/* Whether this call is the one. */
static bool strikes(enum call call)
{
	if (!armed || !(armed->calls & call))
		return false;
	const long number = atomic_fetch_add(&seen, 1) + 1;
	if (number != wanted && !(lasting && number > wanted))
		return false;
	if (armed->kills)
		raise(SIGKILL);
	errno = armed->error;
	return true;
}

static bool is_file(int fd)
{
	struct stat info;
	return fd > STDERR_FILENO && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

/* The function behind the one of this name here. */
#define REAL(name)                                                                                           \
	static __typeof__(&(name)) real;                                                                     \
	if (!real)                                                                                           \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size)
{
	REAL(write);
	if (is_file(fd) && strikes(WRITE)) {
		if (armed->error)
			return -1;
		size = (size + 1) / 2;
	}
	return real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	REAL(pwrite);
	if (is_file(fd) && strikes(WRITE)) {
		if (armed->error)
			return -1;
		size = (size + 1) / 2;
	}
	return real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at)
{
	return pwrite(fd, data, size, at);
}

/* The writes of streams are the C library's own, which cannot be seen from here; their ends can. */
int fflush(FILE *stream)
{
	REAL(fflush);
	if (stream && is_file(fileno(stream)) && strikes(WRITE) && armed->error)
		return EOF;
	return real(stream);
}

int fsync(int fd)
{
	REAL(fsync);
	return strikes(SYNC) ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
	REAL(rename);
	return strikes(RENAME) ? -1 : real(from, to);
}

int ftruncate(int fd, off_t size)
{
	REAL(ftruncate);
	return strikes(TRUNCATE) ? -1 : real(fd, size);
}

int unlink(const char *path)
{
	REAL(unlink);
	return strikes(UNLINK) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags)
{
	REAL(unlinkat);
	return strikes(UNLINK) ? -1 : real(folder, path, flags);
}
