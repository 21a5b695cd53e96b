/* SPDX-License-Identifier: Apache-2.0 */
#include "share/lock.h"
#include "base/clock.h"
#include "base/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum { HOLDER_BYTES = 1024, SHORTEST_NAP = 1000000, LONGEST_NAP = 128 * SHORTEST_NAP /* nanoseconds */ };
static const double TELL_SECONDS = 0.2, LOOK_SECONDS = 1;

struct smalti_lock {
	char *path;
	struct smalti_lock_wait wait;
	struct smalti_heartbeat *heartbeat;
	char *self;            /* what the file says while it is held */
	pthread_mutex_t mutex; /* among the threads of one handle, which share the descriptor */
	int fd;
	bool given_up;
};

static int describe_self(struct smalti_lock *lock, struct smalti_error *error)
{
	struct smalti_process self;
	smalti_process_self(&self);
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	if (smalti_process_print(&self, object, error) == 0)
		lock->self = cJSON_PrintUnformatted(object);
	return lock->self ? 0 : smalti_fail(error, SMALTI_ENOMEM, "no memory for a lock");
}

struct smalti_lock *smalti_lock_open(const char *directory, const struct smalti_lock_wait *wait,
				     struct smalti_heartbeat *heartbeat, struct smalti_error *error)
{
	struct smalti_lock *lock = smalti_calloc(1, sizeof(*lock), error);
	if (!lock)
		return NULL;
	lock->fd = -1;
	lock->wait = *wait;
	lock->heartbeat = heartbeat;
	pthread_mutex_init(&lock->mutex, NULL);
	lock->path = smalti_format(error, "%s/.lock", directory);
	if (lock->path && describe_self(lock, error) == 0)
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
	cJSON_free(lock->self);
	free(lock->path);
	free(lock);
}

/* Returns 1 if it is another's. */
static int set(int fd, short type)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &range) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES || errno == EINTR ? 1 : -1;
}

/* Tells whether the descriptor is (still) that of the file of this name. */
static bool is_current(const struct smalti_lock *lock)
{
	struct stat mine, named;
	return fstat(lock->fd, &mine) == 0 && stat(lock->path, &named) == 0 && mine.st_ino == named.st_ino &&
	       mine.st_dev == named.st_dev;
}

static int try(struct smalti_lock *lock, struct smalti_error *error)
{
	for (;;) {
		if (lock->fd < 0)
			lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
		if (lock->fd < 0)
			return smalti_fail_errno(error, "%s: cannot be opened", lock->path);
		const int status = set(lock->fd, F_WRLCK);
		if (status < 0)
			return smalti_fail_errno(
			    error, "%s: cannot be locked (the file system has to have locks)", lock->path);
		if (is_current(lock))
			return status;
		close(lock->fd); /* it was removed: what is locked now keeps no process out */
		lock->fd = -1;
	}
}

/* One wait for the lock. */
struct waiting {
	double began, told, looked;
	double silent; /* without a sign of the holder's life: what this process slept does not count */
	struct timespec stamp; /* of the file */
	char holder[SMALTI_HOLDER];
};

static void read_holder(int fd, char holder[SMALTI_HOLDER])
{
	char text[HOLDER_BYTES];
	struct smalti_process process;
	const ssize_t length = pread(fd, text, sizeof(text), 0);
	SCOPED(cJSON_Delete) cJSON *object = length > 0 ? cJSON_ParseWithLength(text, (size_t)length) : NULL;
	if (smalti_process_read(&process, object, NULL) == 0)
		smalti_process_name(&process, holder);
	else
		snprintf(holder, SMALTI_HOLDER, "an unknown process");
}

/* Opens the file anew, which is when a network file system asks for its state. */
static void look_at_holder(const struct smalti_lock *lock, struct waiting *waiting, double passed)
{
	struct stat info;
	SCOPED(close) const int fd = open(lock->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	waiting->silent += passed < 2 * LOOK_SECONDS ? passed : 0;
	if (fd >= 0 && fstat(fd, &info) == 0) {
		if (info.st_mtim.tv_sec != waiting->stamp.tv_sec ||
		    info.st_mtim.tv_nsec != waiting->stamp.tv_nsec)
			waiting->silent = 0;
		waiting->stamp = info.st_mtim;
		read_holder(fd, waiting->holder);
	}
}

/* Returns -1 to wait no longer. */
static int bear(struct smalti_lock *lock, struct waiting *waiting, struct smalti_error *error)
{
	const double now = smalti_now();
	const struct smalti_lock_wait *wait = &lock->wait;
	if (now - waiting->told < TELL_SECONDS)
		return 0;
	if (!waiting->holder[0] || now - waiting->looked >= LOOK_SECONDS) {
		look_at_holder(lock, waiting, now - waiting->looked);
		waiting->looked = now;
	}
	waiting->told = now;
	if (wait->go_on && !wait->go_on(wait->user, waiting->holder, now - waiting->began))
		return smalti_fail(error, SMALTI_ECANCELLED, "%s: the wait for %s, who holds it, was ended",
				   lock->path, waiting->holder);
	if (waiting->silent < (double)(SMALTI_LOCK_LEASES * wait->lease_seconds))
		return 0;
	return smalti_fail(
	    error, SMALTI_EIO,
	    "%s: is held by %s, who has given no sign of life for %.0f seconds: let that process "
	    "go on or end it (it may be stopped, or its machine may hang), then give this command "
	    "again",
	    lock->path, waiting->holder, waiting->silent);
}

static int take(struct smalti_lock *lock, struct smalti_error *error)
{
	struct waiting waiting = {.began = smalti_now()};
	struct timespec nap = {.tv_nsec = SHORTEST_NAP};
	waiting.told = waiting.looked = waiting.began;
	for (;;) {
		const int status = try(lock, error);
		if (status <= 0)
			return status;
		if (lock->given_up)
			return smalti_fail(error, SMALTI_ECANCELLED, "%s: is still another's", lock->path);
		if (bear(lock, &waiting, error)) {
			lock->given_up = true;
			return -1;
		}
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < LONGEST_NAP)
			nap.tv_nsec *= 2;
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

/* Writes whose the lock is, if possible: only what those who wait are told depends on it. */
static void sign(const struct smalti_lock *lock)
{
	(void)!pwrite(lock->fd, lock->self, strlen(lock->self), 0);
}

static void unlock(struct smalti_lock *lock)
{
	smalti_heartbeat_remove(lock->heartbeat, lock->fd);
	(void)!ftruncate(lock->fd, 0); /* the next holder may stop before it has signed */
	set(lock->fd, F_UNLCK);
}

int smalti_lock_acquire(struct smalti_lock *lock, int64_t *now, struct smalti_error *error)
{
	pthread_mutex_lock(&lock->mutex);
	int status = take(lock, error);
	if (status == 0) {
		sign(lock);
		status = smalti_heartbeat_add(lock->heartbeat, lock->fd, error);
		if (status == 0 && now)
			status = look_at_clock(lock, now, error);
		if (status)
			unlock(lock);
	}
	if (status)
		pthread_mutex_unlock(&lock->mutex);
	return status;
}

void smalti_lock_release(struct smalti_lock *lock)
{
	unlock(lock);
	pthread_mutex_unlock(&lock->mutex);
}

bool smalti_lock_is_held(const char *directory)
{
	SCOPED(free) char *path = smalti_format(NULL, "%s/.lock", directory);
	SCOPED(close) const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}
