/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The open maps: pages are only freed of memory that comes from a file. */
struct open_map {
	const char *data;
	int64_t size;
	char *path;
	struct stat file; /* when it was opened */
	atomic_bool lost;
	struct open_map *next;
};

static struct open_map *maps;
/* No thread reads a mapped file while it holds this, so that the handler, which only such reads cause, may
 * wait for it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void enter(struct open_map *map)
{
	HOLD_MUTEX(&mutex);
	map->next = maps;
	maps = map;
}

static void free_entry(struct open_map *map)
{
	if (map)
		free(map->path);
	free(map);
}

static void leave(const void *data)
{
	pthread_mutex_lock(&mutex);
	struct open_map **at = &maps;
	while (*at && (*at)->data != data)
		at = &(*at)->next;
	struct open_map *map = *at;
	if (map)
		*at = map->next;
	pthread_mutex_unlock(&mutex);
	free_entry(map);
}

/* Returns the map that holds these bytes; NULL: none. Under the mutex. */
static struct open_map *find(const char *data, int64_t bytes)
{
	struct open_map *map = maps;
	while (map && !(map->data <= data && data + bytes <= map->data + map->size))
		map = map->next;
	return map;
}

static bool is_mapped(const char *data, int64_t bytes)
{
	HOLD_MUTEX(&mutex);
	return find(data, bytes);
}

/* --- files that lose their bytes --------------------------------------------------------------- */

static struct sigaction before; /* the previous handler */

/* Replaces the map that has the address by zeros; false: no map has it. */
static bool replace(const char *at)
{
	HOLD_MUTEX(&mutex);
	struct open_map *map = find(at, 1);
	if (!map)
		return false;
	atomic_store(&map->lost, true);
	return mmap((void *)map->data, (size_t)map->size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) != MAP_FAILED;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		sigaction(number, &before, NULL);
		raise(number); /* delivered after this handler has returned */
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	const int cause = errno;
	const bool of_read = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
	if (!of_read || !replace(info->si_addr))
		pass_on(number, info, context);
	errno = cause;
}

static void install_handler(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, NULL, &before);
	sigaction(SIGBUS, &action, NULL);
}

bool smalti_map_is_lost(const struct smalti_map *map)
{
	HOLD_MUTEX(&mutex);
	const struct open_map *open = map->data ? find(map->data, map->size) : NULL;
	return open && atomic_load(&open->lost);
}

static bool is_changed(const struct stat *was, const struct stat *now)
{
	return now->st_size != was->st_size || now->st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       now->st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

static void describe(const struct open_map *map, const struct stat *now, struct smalti_error *error)
{
	static const char remedy[] = "put a whole file in its place, by renaming it, and start again";
	if (now && now->st_size != map->file.st_size)
		smalti_fail(error, SMALTI_EIO,
			    "%s: changed while it was read: expected %lld bytes, found %lld; %s", map->path,
			    (long long)map->file.st_size, (long long)now->st_size, remedy);
	else if (now && is_changed(&map->file, now))
		smalti_fail(error, SMALTI_EIO,
			    "%s: changed while it was read: it was written to since it was opened; %s",
			    map->path, remedy);
	else
		smalti_fail(error, SMALTI_EIO,
			    "%s: lost its bytes while it was read: it was cut short, or the disk or the "
			    "network fails; %s",
			    map->path, remedy);
}

/* Checks a map under the mutex, which keeps the entry. Files answer at once, or readers would wait, too. */
static int check(struct open_map *map, struct smalti_error *error)
{
	struct stat now;
	const bool is_there =
	    stat(map->path, &now) == 0 && now.st_dev == map->file.st_dev && now.st_ino == map->file.st_ino;
	if (is_there && is_changed(&map->file, &now))
		atomic_store(&map->lost, true);
	if (!atomic_load(&map->lost))
		return 0;
	*error = (struct smalti_error)SMALTI_NO_ERROR;
	describe(map, is_there ? &now : NULL, error);
	return -1;
}

int smalti_map_check(const struct smalti_map *map, struct smalti_error *error)
{
	struct smalti_error unwanted;
	HOLD_MUTEX(&mutex);
	struct open_map *open = map->data ? find(map->data, map->size) : NULL;
	return open ? check(open, error ? error : &unwanted) : 0;
}

/* --- opening and closing ------------------------------------------------------------------------ */

static int map_file(struct smalti_map *map, struct open_map *entry, int fd, struct smalti_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, install_handler);
	if (fstat(fd, &entry->file) < 0)
		return smalti_fail_errno(error, "%s: cannot be examined", entry->path);
	entry->size = entry->file.st_size;
	if (entry->size == 0)
		return 0;
	void *data = mmap(NULL, (size_t)entry->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return smalti_fail_errno(error, "%s: cannot be mapped into memory", entry->path);
#ifdef SMALTI_SIMGRID
	madvise(data, (size_t)entry->size,
		MADV_RANDOM); /* the simulator reads only a digest's pages of the weights */
#endif
	entry->data = data;
	*map = (struct smalti_map){data, entry->size};
	return 0;
}

int smalti_map_open(struct smalti_map *map, const char *path, struct smalti_error *error)
{
	*map = (struct smalti_map){0};
	int64_t size;
	SCOPED(close) const int fd = smalti_open_regular(path, &size, error);
	struct open_map *entry = fd < 0 ? NULL : smalti_calloc(1, sizeof(*entry), error);
	if (entry)
		entry->path = smalti_format(error, "%s", path);
	const int status = entry && entry->path ? map_file(map, entry, fd, error) : -1;
	if (status == 0 && map->data)
		enter(entry);
	else
		free_entry(entry);
	return status;
}

void smalti_map_close(struct smalti_map *map)
{
	if (map->data) {
		leave(map->data);
		munmap((void *)map->data, (size_t)map->size);
	}
	*map = (struct smalti_map){0};
}

static int64_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

void smalti_map_drop(const void *data, int64_t bytes)
{
	const uintptr_t page = (uintptr_t)page_size();
	const uintptr_t begin = (uintptr_t)smalti_round_up((int64_t)(intptr_t)data, page_size());
	const uintptr_t end = ((uintptr_t)data + (uintptr_t)bytes) / page * page;
	if (begin < end && is_mapped(data, bytes))
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Asks in pieces, of which the kernel reads at most some hundred KiB, and only where pages are missing:
 * elsewhere asking is expensive. */
void smalti_map_read_ahead(const void *data, int64_t bytes)
{
	enum { REQUEST = 1 << 17 };
	const int64_t page = page_size();
	if (!is_mapped(data, bytes))
		return;
	char *at = (char *)((uintptr_t)data / (uintptr_t)page * (uintptr_t)page);
	for (const char *end = (const char *)data + bytes; at < end; at += REQUEST) {
		unsigned char present = 0;
		if (mincore(at, (size_t)page, &present) == 0 && !(present & 1))
			madvise(at, (size_t)(end - at < REQUEST ? end - at : REQUEST), MADV_WILLNEED);
	}
}
