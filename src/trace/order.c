/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/order.h"

enum { NOBODY = -1 };

/* The tasks that have touched a tile last. */
struct tile {
	bool used;
	int64_t writer;
	int64_t reader; /* index in readings of the newest reader */
};

struct reading {
	int64_t task, older;
};

struct smalti_task_order {
	struct tile *tiles;
	int64_t tile_room;
	struct reading *readings;
	int64_t reading_count;
	int64_t *edges; /* of all tasks, in their order */
	int64_t edge_count;
	int64_t *end; /* where each task's edges end */
	int64_t tasks;
};

struct smalti_task_order *smalti_task_order_new(struct smalti_error *error)
{
	return smalti_calloc(1, sizeof(struct smalti_task_order), error);
}

void smalti_task_order_free(struct smalti_task_order *order)
{
	if (!order)
		return;
	free(order->tiles);
	free(order->readings);
	free(order->edges);
	free(order->end);
	free(order);
}

static struct tile *tile_at(struct smalti_task_order *order, int64_t number)
{
	if (smalti_grow_to(&order->tiles, &order->tile_room, number, sizeof(*order->tiles), NULL) < 0)
		return NULL;
	struct tile *tile = &order->tiles[number];
	if (!tile->used)
		*tile = (struct tile){true, NOBODY, NOBODY};
	return tile;
}

static void wait_for(struct smalti_task_order *order, int64_t task)
{
	const int64_t first = order->tasks ? order->end[order->tasks - 1] : 0;
	if (task == NOBODY || task == order->tasks)
		return;
	for (int64_t i = order->edge_count - 1; i >= first && i >= order->edge_count - SMALTI_MAX_BUFFERS;
	     i--)
		if (order->edges[i] == task)
			return;
	if (smalti_grow(&order->edges, order->edge_count, sizeof(*order->edges), NULL) == 0)
		order->edges[order->edge_count++] = task;
}

static void read_tile(struct smalti_task_order *order, struct tile *tile)
{
	wait_for(order, tile->writer);
	if (smalti_grow(&order->readings, order->reading_count, sizeof(*order->readings), NULL) < 0)
		return;
	order->readings[order->reading_count] = (struct reading){order->tasks, tile->reader};
	tile->reader = order->reading_count++;
}

/* Waits for the last writer and all readers since. */
static void write_tile(struct smalti_task_order *order, struct tile *tile)
{
	wait_for(order, tile->writer);
	for (int64_t i = tile->reader; i != NOBODY; i = order->readings[i].older)
		wait_for(order, order->readings[i].task);
	tile->writer = order->tasks;
	tile->reader = NOBODY;
}

void smalti_task_order_uses(struct smalti_task_order *order, int64_t number, enum smalti_access access)
{
	struct tile *tile = tile_at(order, number);
	if (!tile)
		return;
	if (access == SMALTI_READ || access == SMALTI_WAIT)
		read_tile(order, tile);
	else
		write_tile(order, tile);
}

int64_t smalti_task_order_inserts(struct smalti_task_order *order)
{
	if (smalti_grow(&order->end, order->tasks, sizeof(*order->end), NULL) < 0)
		return NOBODY;
	order->end[order->tasks] = order->edge_count;
	return order->tasks++;
}

const int64_t *smalti_task_order_before(const struct smalti_task_order *order, int64_t task, int64_t *count)
{
	const int64_t first = task > 0 ? order->end[task - 1] : 0;
	*count = order->end[task] - first;
	return order->edges + first;
}
