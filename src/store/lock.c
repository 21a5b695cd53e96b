/* SPDX-License-Identifier: Apache-2.0 */
#include "store/lock.h"
#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct smalti_lock {
	char *path;
	pthread_mutex_t mutex; /* among the threads of one handle, which share the descriptor */
	int fd;
};

struct smalti_lock *smalti_lock_open(const char *folder, struct smalti_error *error)
{
	struct smalti_lock *lock = smalti_calloc(1, sizeof(*lock), error);
	if (!lock)
		return NULL;
	lock->fd = -1;
	pthread_mutex_init(&lock->mutex, NULL);
	lock->path = smalti_format(error, "%s/.lock", folder);
	if (lock->path)
		return lock;
	smalti_lock_close(lock);
	return NULL;
}

void smalti_lock_close(struct smalti_lock *lock)
{
	if (!lock)
		return;
	if (lock->fd >= 0)
		close(lock->fd);
	pthread_mutex_destroy(&lock->mutex);
	free(lock->path);
	free(lock);
}

static int set(int fd, short type)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET};
	int status;
	do {
		status = fcntl(fd, F_OFD_SETLKW, &range);
	} while (status && errno == EINTR);
	return status;
}

/* Whether the descriptor is (still) that of the file of this name. */
static bool is_current(const struct smalti_lock *lock)
{
	struct stat mine, named;
	return fstat(lock->fd, &mine) == 0 && stat(lock->path, &named) == 0 && mine.st_ino == named.st_ino &&
	       mine.st_dev == named.st_dev;
}

static int take(struct smalti_lock *lock, struct smalti_error *error)
{
	for (;;) {
		if (lock->fd < 0)
			lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
		if (lock->fd < 0)
			return smalti_fail_errno(error, "%s: cannot be opened", lock->path);
		if (set(lock->fd, F_WRLCK))
			return smalti_fail_errno(
			    error, "%s: cannot be locked (the file system has to have locks)", lock->path);
		if (is_current(lock))
			return 0;
		close(lock->fd); /* someone has removed it: what is locked now keeps nobody out */
		lock->fd = -1;
	}
}

static int look_at_clock(const struct smalti_lock *lock, int64_t *now, struct smalti_error *error)
{
	struct stat info;
	if (futimens(lock->fd, NULL) || fstat(lock->fd, &info))
		return smalti_fail_errno(error, "%s: cannot be touched", lock->path);
	*now = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
	return 0;
}

int smalti_lock_take(struct smalti_lock *lock, int64_t *now, struct smalti_error *error)
{
	pthread_mutex_lock(&lock->mutex);
	int status = take(lock, error);
	if (status == 0 && now) {
		status = look_at_clock(lock, now, error);
		if (status)
			set(lock->fd, F_UNLCK);
	}
	if (status)
		pthread_mutex_unlock(&lock->mutex);
	return status;
}

void smalti_lock_give(struct smalti_lock *lock)
{
	set(lock->fd, F_UNLCK);
	pthread_mutex_unlock(&lock->mutex);
}
