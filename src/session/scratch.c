/* SPDX-License-Identifier: Apache-2.0 */
#include "session/scratch.h"
#include "base/offload.h"
#include "rt/session.h"

#include <limits.h>
#include <starpu.h>

/* The place of a tile in the file. */
struct extent {
	int64_t offset, bytes;
	struct extent *next; /* in the list of free extents */
};

/* StarPU's own operations. Its measurement needs their objects; nothing is written to those. */
static const struct starpu_disk_ops *const theirs = &starpu_disk_stdio_ops;

static struct scratch {
	struct smalti_session *session;
	struct smalti_offload *file;
	void *measuring; /* the state of StarPU's operations while the disk is measured; else NULL */
	pthread_mutex_t mutex;
	struct extent *free;
	int64_t end;
	struct smalti_error error; /* the first one */
} scratch = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct extent nowhere = {.bytes = -1}; /* of a tile for which there was no memory */

/* Fails all task groups: what is on the disk may belong to any. */
static void fail_all(const struct smalti_error *error)
{
	struct smalti_lost *lost = &scratch.session->lost;
	HOLD_MUTEX(&lost->mutex);
	smalti_pass(&scratch.error, error);
	for (struct smalti_task_group *group = lost->groups; group; group = group->next)
		smalti_task_group_fail(group, error);
}

/* Takes a free extent of the same size, or returns NULL. */
static struct extent *take_free(int64_t bytes)
{
	HOLD_MUTEX(&scratch.mutex);
	for (struct extent **at = &scratch.free; *at; at = &(*at)->next) {
		struct extent *extent = *at;
		if (extent->bytes != bytes)
			continue;
		*at = extent->next;
		return extent;
	}
	return NULL;
}

static struct extent *append(int64_t bytes)
{
	struct extent *extent = smalti_calloc(1, sizeof(*extent), NULL);
	if (!extent)
		return &nowhere;
	HOLD_MUTEX(&scratch.mutex);
	*extent = (struct extent){.offset = scratch.end, .bytes = bytes};
	scratch.end += bytes;
	return extent;
}

/* Never returns NULL: StarPU would ask for ever. */
static void *allocate(void *base, size_t bytes)
{
	(void)base;
	if (scratch.measuring)
		return theirs->alloc(scratch.measuring, bytes);
	struct extent *extent = take_free((int64_t)bytes);
	return extent ? extent : append((int64_t)bytes);
}

static void give_back(void *base, void *object, size_t bytes)
{
	(void)base;
	if (scratch.measuring) {
		theirs->free(scratch.measuring, object, bytes);
		return;
	}
	struct extent *extent = object;
	if (extent == &nowhere)
		return;
	smalti_offload_drop(scratch.file, extent->offset, extent->bytes);
	HOLD_MUTEX(&scratch.mutex);
	extent->next = scratch.free;
	scratch.free = extent;
}

/* Returns the position in the file. While StarPU measures, the file holds nothing else. */
static int64_t place(const void *object, off_t offset)
{
	return offset + (scratch.measuring ? 0 : ((const struct extent *)object)->offset);
}

static int check_place(const void *object, struct smalti_error *error)
{
	return object == &nowhere ? smalti_fail(error, SMALTI_ENOMEM, "no memory for a note of a tile") : 0;
}

static int write_tile(void *base, void *object, const void *data, off_t offset, size_t bytes)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	(void)base;
	if (check_place(object, &error) < 0 ||
	    smalti_offload_write(scratch.file, place(object, offset), (int64_t)bytes, data, &error) < 0 ||
	    (scratch.measuring && smalti_offload_sync(scratch.file, &error) < 0))
		fail_all(&error);
	return 0;
}

/* Reads a tile; what cannot be read becomes zeros. */
static int read_tile(void *base, void *object, void *data, off_t offset, size_t bytes)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	(void)base;
	if (check_place(object, &error) < 0 || smalti_offload_read(scratch.file, place(object, offset),
								   (int64_t)bytes, false, data, &error) < 0) {
		memset(data, 0, bytes);
		fail_all(&error);
	}
	return (int)smalti_min(INT_MAX, (int64_t)bytes);
}

static void *plug(void *parameter, starpu_ssize_t size)
{
	(void)parameter, (void)size;
	return &scratch;
}

static void unplug(void *base)
{
	(void)base;
	for (struct extent *extent; (extent = scratch.free);) {
		scratch.free = extent->next;
		free(extent);
	}
	smalti_offload_close(scratch.file);
	scratch.file = NULL;
}

static int measure(unsigned node, void *base)
{
	(void)base;
	return theirs->bandwidth(node, scratch.measuring);
}

/* StarPU's disk operations. They have copied when they return; while one waits for the disk, other workers
 * continue. */
static struct starpu_disk_ops operations = {
    .plug = plug,
    .unplug = unplug,
    .bandwidth = measure,
    .alloc = allocate,
    .free = give_back,
    .read = read_tile,
    .write = write_tile,
};

/* Adds the disk. It is measured beside StarPU's other measurements: no file in the scratch directory has a
 * name. */
static int add_disk(char *measurements, struct smalti_error *error)
{
	scratch.measuring = theirs->plug(measurements, -1);
	const int node = starpu_disk_register(&operations, NULL, (starpu_ssize_t)-1);
	theirs->unplug(scratch.measuring);
	scratch.measuring = NULL;
	if (scratch.error.code)
		return smalti_pass(error, &scratch.error);
	return node >= 0 ? 0 : smalti_fail(error, SMALTI_EIO, "%s: no file can be made there", measurements);
}

int smalti_scratch_open(struct smalti_session *session, const char *directory, struct smalti_error *error)
{
	struct smalti_offload *file = smalti_offload_open(directory, STARPU_DISK_SIZE_MIN, error);
	if (!file)
		return -1;
	scratch.session = session;
	scratch.file = file;
	scratch.end = 0;
	scratch.error = (struct smalti_error)SMALTI_NO_ERROR;
	return add_disk(session->directory.path, error);
}
