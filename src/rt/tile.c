/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/tile.h"
#include "host/placeholder.h"
#include "host/tile_memory.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/session.h"
#include "rt/tile_forms.h"

#include <starpu.h>

static int take_memory(struct smalti_tile *tile, struct smalti_pool *pool, int64_t bytes, const void *data,
		       struct smalti_error *error)
{
	tile->pool = data ? NULL : pool;
	tile->memory = data ? (void *)(uintptr_t)data : smalti_tile_memory_acquire(pool, bytes, error);
	return tile->memory ? 0 : -1;
}

/* Makes a tile of the given size, without memory. */
static struct smalti_tile *new_tile(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				    struct smalti_error *error)
{
	int64_t bytes = rows;
	if (rows <= 0 || rows > UINT32_MAX || row_bytes <= 0 || !smalti_multiply(&bytes, row_bytes)) {
		smalti_fail(error, SMALTI_EINVAL, "a tile of %lld rows of %lld bytes cannot be made",
			    (long long)rows, (long long)row_bytes);
		return NULL;
	}
	struct smalti_counting *counting = task_group->session->counting;
	if (smalti_ranks_count() > 1 && !counting && smalti_placeholder_prepare(bytes, error) < 0)
		return NULL;
	struct smalti_tile *tile = smalti_calloc(1, sizeof(*tile), error);
	if (!tile)
		return NULL;
	tile->task_group = task_group->number;
	tile->number = atomic_fetch_add(&task_group->session->tiles, 1) + 1;
	tile->rows = rows;
	tile->row_bytes = row_bytes;
	tile->owner = SMALTI_ANYWHERE;
	tile->counting = counting;
	return tile;
}

static struct smalti_tile *make(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				const void *data)
{
	if (smalti_task_group_broken(task_group))
		return NULL;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = task_group->session;
	struct smalti_tile *tile = new_tile(task_group, rows, row_bytes, &error);
	if (tile && !tile->counting && (data || session->sequential) &&
	    take_memory(tile, session->pool, rows * row_bytes, data, &error) < 0) {
		free(tile);
		tile = NULL;
	}
	if (!tile)
		smalti_task_group_break(task_group, &error);
	else if (tile->counting)
		smalti_counting_makes(tile);
	return tile;
}

struct smalti_tile *smalti_tile_of_forms(struct smalti_task_group *task_group,
					 const struct smalti_tile_forms *forms)
{
	if (smalti_task_group_broken(task_group))
		return NULL;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile *tile = new_tile(task_group, 1, forms->bytes[SMALTI_DEVICE_CPU], &error);
	if (tile && !(tile->formed = smalti_formed_new(task_group, forms, &error))) {
		free(tile);
		tile = NULL;
	}
	if (!tile)
		smalti_task_group_break(task_group, &error);
	return tile;
}

struct smalti_tile *smalti_tile_new(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes)
{
	return make(task_group, rows, row_bytes, NULL);
}

struct smalti_tile *smalti_tile_over(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				     const void *data)
{
	return make(task_group, rows, row_bytes, data);
}

/* Fills StarPU's memory of a new tile. NULL, with the task group broken, if that fails. */
static struct smalti_tile *fill_handle(struct smalti_task_group *task_group, struct smalti_tile *tile,
				       const void *data)
{
	const int64_t bytes = tile->rows * tile->row_bytes;
	struct smalti_error error = SMALTI_NO_ERROR;
	/* This does not block: nothing uses the new handle yet. */
	if (starpu_data_acquire(smalti_tile_handle(tile), STARPU_W)) {
		smalti_fail(&error, SMALTI_EINVAL, "a tile cannot be filled from within a task");
		smalti_task_group_break(task_group, &error);
		smalti_tile_release(tile);
		return NULL;
	}
	void *memory = (void *)starpu_vector_get_local_ptr(tile->handle);
	if (smalti_tile_memory_is_placeholder(memory)) {
		smalti_tile_memory_fail(bytes, &error);
		smalti_task_group_fail(task_group, &error);
	} else {
		memcpy(memory, data, (size_t)bytes);
	}
	starpu_data_release(tile->handle);
	return tile;
}

/* Fills a new tile on the ranks of `places`. */
static struct smalti_tile *fill(struct smalti_task_group *task_group, struct smalti_tile *tile,
				const void *data, const struct smalti_bits *places)
{
	if (tile->counting) {
		smalti_counting_uploads(tile);
		return tile;
	}
	if (tile->memory) {
		memcpy(tile->memory, data, (size_t)(tile->rows * tile->row_bytes));
		return tile;
	}
	tile->valid_places = *places;
	return smalti_bits_has(places, smalti_ranks_own()) ? fill_handle(task_group, tile, data) : tile;
}

struct smalti_tile *smalti_tile_upload(struct smalti_task_group *task_group, int64_t rows, int64_t row_bytes,
				       const void *data)
{
	/* main memory is place 0 */
	const struct smalti_bits places = smalti_ranks_count() > 1 ? smalti_bits_all() : smalti_bits_one(0);
	struct smalti_tile *tile = smalti_tile_new(task_group, rows, row_bytes);
	return tile ? fill(task_group, tile, data, &places) : NULL;
}

struct smalti_tile *smalti_tile_upload_there(struct smalti_task_group *task_group, int64_t rows,
					     int64_t row_bytes, const void *data)
{
	struct smalti_tile *tile = smalti_tile_new(task_group, rows, row_bytes);
	if (!tile)
		return NULL;
	tile->rank = smalti_ranks_of(task_group->place);
	const struct smalti_bits places = smalti_bits_one(tile->rank);
	return fill(task_group, tile, data, &places);
}

void smalti_tile_release(struct smalti_tile *tile)
{
	if (!tile)
		return;
	tile->released = true;
	if (tile->held)
		return;
	if (tile->counting)
		smalti_counting_releases(tile);
	if (tile->handle)
		starpu_data_unregister_submit(tile->handle);
	else if (tile->formed)
		smalti_formed_free(tile->formed);
	else if (tile->pool)
		smalti_tile_memory_release(tile->pool, tile->memory);
	free(tile);
}

void smalti_tile_let_go(struct smalti_tile *tile)
{
	tile->held = false;
	if (tile->released)
		smalti_tile_release(tile);
}

bool smalti_tile_is_local(const struct smalti_tile *tile)
{
	return tile->released && !tile->handle && !tile->formed && !tile->memory &&
	       !smalti_bits_any(&tile->valid_places);
}

void *smalti_tile_handle(struct smalti_tile *tile)
{
	if (tile->handle)
		return tile->handle;
	if (tile->formed) {
		smalti_formed_register(tile->formed, &tile->handle);
		return tile->handle;
	}
	starpu_vector_data_register(&tile->handle, tile->memory ? STARPU_MAIN_RAM : -1,
				    (uintptr_t)tile->memory, (uint32_t)tile->rows, (size_t)tile->row_bytes);
	starpu_data_set_user_data(tile->handle, (void *)(intptr_t)tile->task_group);
	return tile->handle;
}

void smalti_tile_bring(struct smalti_tile *tile, enum smalti_access access, int rank, int priority)
{
	if (tile->memory || tile->formed)
		return; /* each rank has its own */
	if (access != SMALTI_WRITE && !smalti_bits_has(&tile->valid_places, rank))
		smalti_ranks_copy(smalti_tile_handle(tile), tile->rank, rank, priority);
	if (access == SMALTI_READ) {
		smalti_bits_add(&tile->valid_places, rank);
		return;
	}
	if (rank != smalti_ranks_own() && smalti_bits_has(&tile->valid_places, smalti_ranks_own()))
		starpu_data_invalidate_submit(smalti_tile_handle(tile));
	tile->valid_places = smalti_bits_one(rank);
	tile->rank = rank;
}

struct prefetch {
	starpu_data_handle_t handle;
	unsigned node;
	int priority;
};

static void written(void *argument)
{
	struct prefetch *prefetch = argument;
	starpu_data_prefetch_on_node_prio(prefetch->handle, prefetch->node, 1, prefetch->priority);
	starpu_data_release_on_node(prefetch->handle, STARPU_ACQUIRE_NO_NODE);
	free(prefetch);
}

/* Acquires the tile first, where it is: StarPU's prefetch does not wait for tasks that have yet to write. */
void smalti_tile_prefetch(struct smalti_tile *tile, unsigned node, int priority)
{
	struct prefetch *prefetch = malloc(sizeof(*prefetch));
	if (!prefetch)
		return; /* then the task itself fetches the tile */
	*prefetch = (struct prefetch){smalti_tile_handle(tile), node, priority};
	if (starpu_data_acquire_on_node_cb(prefetch->handle, STARPU_ACQUIRE_NO_NODE, STARPU_R, written,
					   prefetch))
		free(prefetch);
}

void smalti_tile_prefetch_idle(struct smalti_tile *tile, int place, unsigned node, int priority)
{
	if (!(tile->formed || tile->memory) || smalti_bits_has(&tile->seen, place))
		return;
	smalti_bits_add(&tile->seen, place);
	starpu_data_idle_prefetch_on_node_prio(smalti_tile_handle(tile), node, 1, priority);
}

void *smalti_tile_memory(const struct smalti_tile *tile, struct smalti_error *error)
{
	return tile->formed ? (void *)(uintptr_t)smalti_formed_memory(tile->formed, error) : tile->memory;
}

int64_t smalti_tile_moved_bytes(const struct smalti_tile *tile)
{
	return tile->formed ? smalti_formed_bytes(tile->formed, SMALTI_DEVICE_GPU)
			    : tile->rows * tile->row_bytes;
}
