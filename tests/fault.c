/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD: the Nth call of a kind that touches a file fails, or is where the process is
 * killed or stopped. SMALTI_FAULT is KIND:N, or KIND:N+ for the Nth and all later ones; a process may also
 * arm itself. With SMALTI_FAULT_IN only calls on what lies in that directory count, a path as the command has
 * it; their number is written to the file SMALTI_FAULT_COUNT at the end.
 * The kind "shrink" lets the call be, but cuts the file SMALTI_SHRINK to half of its size before it.
 */
#include "fault.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC visibility push(default)

enum call {
	WRITE = 1,
	SYNC = 2,
	RENAME = 4,
	TRUNCATE = 8,
	UNLINK = 16,
	MAKE = 32,  /* a file or a directory */
	OPEN = 64,  /* what is there */
	READ = 128, /* or examine */
	LOCK = 256,
	LEAVE = 512, /* a file that may stay mapped, or memory of it */
	CHANGES = WRITE | SYNC | RENAME | TRUNCATE | UNLINK,
	ALL = CHANGES | MAKE | OPEN | READ | LOCK
};

static const struct kind {
	const char *name;
	int calls;  /* which it counts */
	int error;  /* 0: half of a write is done */
	int signal; /* instead */
} kinds[] = {
    {"write", WRITE, EIO, 0},         {"full", WRITE, ENOSPC, 0},
    {"short", WRITE, 0, 0},           {"sync", SYNC, EIO, 0},
    {"rename", RENAME, EIO, 0},       {"truncate", TRUNCATE, EIO, 0},
    {"unlink", UNLINK, EACCES, 0},    {"undo", SYNC | TRUNCATE, EIO, 0},
    {"all", CHANGES, EIO, 0},         {"kill", CHANGES, 0, SIGKILL},
    {"open-emfile", OPEN, EMFILE, 0}, {"open-enfile", OPEN, ENFILE, 0},
    {"open-eacces", OPEN, EACCES, 0}, {"open-enomem", OPEN, ENOMEM, 0},
    {"read-eio", READ, EIO, 0},       {"read-estale", READ, ESTALE, 0},
    {"any-eio", ALL, EIO, 0},         {"any-enospc", CHANGES | MAKE, ENOSPC, 0},
    {"any-kill", ALL, 0, SIGKILL},    {"any-stop", ALL, 0, SIGSTOP},
    {"shrink", ALL | LEAVE, 0, 0},
};

static const struct kind *armed;
static long wanted;
static bool lasting;
static atomic_long seen;
static const char *directory;    /* NULL: anywhere */
static char whole[2 * PATH_MAX]; /* the directory's whole path */

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
	char here[PATH_MAX];
	directory = getenv("SMALTI_FAULT_IN");
	if (directory && getcwd(here, sizeof(here)))
		snprintf(whole, sizeof(whole), "%s/%s", here, directory);
	test_fault_arm(getenv("SMALTI_FAULT"));
}

__attribute__((destructor)) static void tell_count(void)
{
	const char *path = getenv("SMALTI_FAULT_COUNT");
	armed = NULL;
	FILE *file = path ? fopen(path, "we") : NULL;
	if (!file)
		return;
	fprintf(file, "%ld\n", test_fault_seen());
	fclose(file);
}

static void shrink(const char *path)
{
	struct statx info;
	if (path && statx(AT_FDCWD, path, 0, STATX_SIZE, &info) == 0 &&
	    truncate(path, (off_t)info.stx_size / 2))
		abort();
}

/* Whether this call is the one. */
static bool strikes(enum call call)
{
	if (!armed || !(armed->calls & call))
		return false;
	const long number = atomic_fetch_add(&seen, 1) + 1;
	if (number != wanted && !(lasting && number > wanted))
		return false;
	if (armed->signal)
		raise(armed->signal);
	if (armed->calls & LEAVE)
		shrink(getenv("SMALTI_SHRINK"));
	errno = armed->error;
	return !armed->signal && !(armed->calls & LEAVE);
}

static bool is_within(const char *path, const char *of)
{
	const size_t length = strlen(of);
	return strncmp(path, of, length) == 0 && (path[length] == '/' || !path[length]);
}

static bool strikes_path(enum call call, const char *path)
{
	if (!armed || (directory && !is_within(path, directory) && !is_within(path, whole)))
		return false;
	return strikes(call);
}

static bool strikes_file(enum call call, int fd)
{
	char link[64], path[PATH_MAX] = "";
	struct stat info;
	if (!armed || fd <= STDERR_FILENO || fstat(fd, &info) ||
	    !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (directory && (readlink(link, path, sizeof(path) - 1) < 0 || !is_within(path, whole)))
		return false;
	return strikes(call);
}

/* The function behind the one of this name here. */
#define REAL(name)                                                                                           \
	static __typeof__(&(name)) real;                                                                     \
	if (!real)                                                                                           \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size)
{
	REAL(write);
	if (strikes_file(WRITE, fd)) {
		if (armed->error)
			return -1;
		size = (size + 1) / 2;
	}
	return real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	REAL(pwrite);
	if (strikes_file(WRITE, fd)) {
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

ssize_t read(int fd, void *data, size_t size)
{
	REAL(read);
	return strikes_file(READ, fd) ? -1 : real(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	REAL(pread);
	return strikes_file(READ, fd) ? -1 : real(fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off_t at)
{
	return pread(fd, data, size, at);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	REAL(mmap);
	return strikes_file(READ, fd) ? MAP_FAILED : real(at, size, protection, flags, fd, offset);
}

int madvise(void *at, size_t size, int advice)
{
	REAL(madvise);
	strikes(LEAVE);
	return real(at, size, advice);
}

int close(int fd)
{
	REAL(close);
	strikes_file(LEAVE, fd);
	return real(fd);
}

/* The mode of a file that may be made, which comes behind the flags. */
#define MODE(flags)                                                                                          \
	unsigned int mode = 0;                                                                               \
	va_list rest;                                                                                        \
	va_start(rest, flags);                                                                               \
	if ((flags) & (O_CREAT | O_TMPFILE))                                                                 \
		mode = va_arg(rest, unsigned int);                                                           \
	va_end(rest)

int openat(int at, const char *path, int flags, ...)
{
	REAL(openat);
	MODE(flags);
	const enum call call = flags & O_CREAT ? MAKE : OPEN;
	if (at == AT_FDCWD || path[0] == '/' ? strikes_path(call, path) : strikes_file(call, at))
		return -1;
	return real(at, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	MODE(flags);
	return openat(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	MODE(flags);
	return openat(AT_FDCWD, path, flags, mode);
}

DIR *opendir(const char *path)
{
	REAL(opendir);
	return strikes_path(OPEN, path) ? NULL : real(path);
}

int mkdir(const char *path, mode_t mode)
{
	REAL(mkdir);
	return strikes_path(MAKE, path) ? -1 : real(path, mode);
}

int stat(const char *path, struct stat *info)
{
	REAL(stat);
	return strikes_path(READ, path) ? -1 : real(path, info);
}

int access(const char *path, int mode)
{
	REAL(access);
	return strikes_path(READ, path) ? -1 : real(path, mode);
}

int fcntl(int fd, int command, ...)
{
	REAL(fcntl);
	va_list rest;
	va_start(rest, command);
	void *argument = va_arg(rest, void *);
	va_end(rest);
	const bool locks = command == F_OFD_SETLK || command == F_OFD_SETLKW;
	return locks && strikes_file(LOCK, fd) ? -1 : real(fd, command, argument);
}

int fsync(int fd)
{
	REAL(fsync);
	return strikes_file(SYNC, fd) ? -1 : real(fd);
}

int syncfs(int fd)
{
	REAL(syncfs);
	return strikes_file(SYNC, fd) ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
	REAL(rename);
	return strikes_path(RENAME, from) ? -1 : real(from, to);
}

int ftruncate(int fd, off_t size)
{
	REAL(ftruncate);
	return strikes_file(TRUNCATE, fd) ? -1 : real(fd, size);
}

int unlink(const char *path)
{
	REAL(unlink);
	return strikes_path(UNLINK, path) ? -1 : real(path);
}

int unlinkat(int at, const char *path, int flags)
{
	REAL(unlinkat);
	if (at == AT_FDCWD || path[0] == '/' ? strikes_path(UNLINK, path) : strikes_file(UNLINK, at))
		return -1;
	return real(at, path, flags);
}
