/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <sys/mman.h>

/* What is mapped at present: pages are only given back of memory that is sure to come from a file. */
struct open_map {
	const char *data;
	int64_t size;
	struct open_map *next;
};

static struct open_map *maps;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void enter(struct open_map *map)
{
	HOLD_MUTEX(&mutex);
	map->next = maps;
	maps = map;
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
	free(map);
}

static bool is_mapped(const char *data, int64_t bytes)
{
	HOLD_MUTEX(&mutex);
	const struct open_map *map = maps;
	while (map && !(map->data <= data && data + bytes <= map->data + map->size))
		map = map->next;
	return map;
}

static int map_file(struct smalti_map *map, const char *path, int fd, int64_t size,
		    struct smalti_error *error)
{
	struct open_map *entry = smalti_calloc(1, sizeof(*entry), error);
	if (!entry)
		return -1;
	void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) {
		free(entry);
		return smalti_fail_errno(error, "%s: cannot be mapped into memory", path);
	}
#ifdef SMALTI_SIMGRID
	madvise(data, (size_t)size, MADV_RANDOM); /* nobody reads more of weights than a digest's pages */
#endif
	*map = (struct smalti_map){data, size};
	*entry = (struct open_map){data, size, NULL};
	enter(entry);
	return 0;
}

int smalti_map_open(struct smalti_map *map, const char *path, struct smalti_error *error)
{
	*map = (struct smalti_map){0};
	int64_t size;
	SCOPED(close) const int fd = smalti_open_regular(path, &size, error);
	if (fd < 0)
		return -1;
	return size > 0 ? map_file(map, path, fd, size, error) : 0;
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

/* The kernel reads no more than some hundred KiB for one request, and asking costs little only where
 * something is missing. */
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
