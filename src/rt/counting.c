/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/counting.h"
#include "host/pool.h"
#include "rt/places.h"
#include "rt/session.h"
#include "rt/tile_forms.h"

struct smalti_counting *smalti_counting_new(int places, bool devices, struct smalti_error *error)
{
	struct smalti_counting *counting = NULL;
	if (smalti_check_range(places, 1, SMALTI_BITS - 1, "places", error) == 0)
		counting = smalti_calloc(
		    1, (int64_t)sizeof(*counting) + places * (int64_t)sizeof(counting->at[0]), error);
	if (counting) {
		counting->places = places;
		counting->devices = devices;
	}
	return counting;
}

enum smalti_device_kind smalti_counting_kind(const struct smalti_counting *counting, int place)
{
	return counting->devices && place > 0 ? SMALTI_DEVICE_GPU : SMALTI_DEVICE_CPU;
}

static int64_t bytes_of(const struct smalti_tile *tile)
{
	return smalti_pool_block_bytes(tile->rows * tile->row_bytes);
}

static struct smalti_counted_bytes *bytes_at(struct smalti_counting *counting, int place)
{
	return &counting->at[place == SMALTI_ANYWHERE ? 0 : place % counting->places].bytes;
}

/* A place's first tile that tasks are put behind stands for all of them. The tasks before it has been written
 * once more have ended, if they waited for it. */
void smalti_counting_behind(struct smalti_counting *counting, int place, const struct smalti_tile *barrier)
{
	struct smalti_counted_bytes *bytes = bytes_at(counting, place);
	if (bytes->barrier == 0)
		bytes->barrier = barrier->number;
	if (bytes->barrier != barrier->number || !bytes->written)
		return;
	bytes->written = false;
	bytes->at_barrier = bytes->now;
	bytes->since_barrier = 0;
}

void smalti_counting_mark(struct smalti_counting *counting)
{
	counting->marked = counting->newest;
	for (int place = 0; place < counting->places; place++)
		counting->at[place].bytes = (struct smalti_counted_bytes){0};
}

/* Counts what tasks between two barriers release until the second one: they run in any order. */
static void hold_bytes(struct smalti_counted_bytes *bytes, int64_t more)
{
	bytes->now += more;
	bytes->since_barrier += smalti_max(0, more);
	bytes->max = smalti_max(bytes->max, bytes->at_barrier + bytes->since_barrier);
}

static double sum(const double bytes[SMALTI_COUNTED_TILES])
{
	return bytes[SMALTI_COUNTED_OWN] + bytes[SMALTI_COUNTED_FOREIGN];
}

static void begin_layer(struct smalti_counted *at, int64_t layer)
{
	if (layer == at->memory_layer)
		return;
	at->memory_layer = layer;
	memcpy(at->at_layer, at->held, sizeof(at->held));
	memset(at->since_layer, 0, sizeof(at->since_layer));
}

/* Counts bytes that a place has from now on, or has no more. */
static void hold(struct smalti_counted *at, double bytes, enum smalti_counted_tiles whose, int64_t layer)
{
	begin_layer(at, layer);
	at->held[whose] += bytes;
	if (bytes < 0)
		return;
	at->since_layer[whose] += bytes;
	if (sum(at->at_layer) + sum(at->since_layer) > sum(at->max))
		for (int i = 0; i < SMALTI_COUNTED_TILES; i++)
			at->max[i] = at->at_layer[i] + at->since_layer[i];
}

void smalti_counting_makes(struct smalti_tile *tile)
{
	struct smalti_counting *counting = tile->counting;
	tile->rank = SMALTI_ANYWHERE;
	counting->newest = tile->number;
	hold(&counting->all, (double)bytes_of(tile), SMALTI_COUNTED_OWN, counting->layer);
}

static void hold_at(const struct smalti_tile *tile, int place, int sign)
{
	struct smalti_counted *at = &tile->counting->at[place];
	hold(at, sign * (double)bytes_of(tile),
	     place == tile->rank ? SMALTI_COUNTED_OWN : SMALTI_COUNTED_FOREIGN, tile->counting->layer);
	if (tile->number > tile->counting->marked)
		hold_bytes(&at->bytes, sign * bytes_of(tile));
}

/* Counts a tile that comes to a place or is made there: it has memory there from now on, until it is
 * released. */
static void arrive(struct smalti_tile *tile, int place)
{
	if (place == SMALTI_ANYWHERE || smalti_bits_has(&tile->seen, place))
		return;
	if (!smalti_bits_any(&tile->seen))
		tile->rank = place;
	smalti_bits_add(&tile->seen, place);
	hold_at(tile, place, 1);
}

void smalti_counting_uploads(struct smalti_tile *tile)
{
	tile->valid_places = tile->counting->devices ? smalti_bits_one(0) : smalti_bits_all();
	for (int place = 0; place < tile->counting->places; place++)
		if (smalti_bits_has(&tile->valid_places, place))
			arrive(tile, place);
}

void smalti_counting_releases(const struct smalti_tile *tile)
{
	struct smalti_counting *counting = tile->counting;
	if (tile->formed)
		return;
	for (int place = 0; place < counting->places; place++) {
		if (smalti_bits_has(&tile->seen, place))
			hold_at(tile, place, -1);
		if (bytes_at(counting, place)->barrier == tile->number)
			bytes_at(counting, place)->barrier = 0;
	}
	hold(&counting->all, -(double)bytes_of(tile), SMALTI_COUNTED_OWN, counting->layer);
}

/* Counts a weight once at each place, and once of all. */
static void count_weight(struct smalti_counting *counting, struct smalti_tile *tile, int place)
{
	const int all = counting->places;
	if (!smalti_bits_has(&tile->valid_places, all)) {
		smalti_bits_add(&tile->valid_places, all);
		counting->all.weights += (double)smalti_formed_bytes(
		    tile->formed, counting->devices ? SMALTI_DEVICE_GPU : SMALTI_DEVICE_CPU);
	}
	if (place != SMALTI_ANYWHERE && !smalti_bits_has(&tile->valid_places, place))
		counting->at[place].weights +=
		    (double)smalti_formed_bytes(tile->formed, smalti_counting_kind(counting, place));
}

/* Counts a tile that a task at a place uses; returns whether it is keys that were made elsewhere. */
static bool use(struct smalti_task_group *task_group, struct smalti_tile *tile, enum smalti_access access,
		int place)
{
	if (tile->formed)
		count_weight(tile->counting, tile, place);
	else
		arrive(tile, place);
	if (access != SMALTI_READ && bytes_at(tile->counting, place)->barrier == tile->number)
		bytes_at(tile->counting, place)->written = true;
	smalti_task_transfers_count(task_group, tile, access, place);
	return access == SMALTI_READ && tile->transfer_kind == SMALTI_TRANSFER_KEYS && tile->rank != place;
}

static void count(struct smalti_counted *at, double flops, bool foreign, int64_t layer)
{
	at->flops += flops;
	at->operations++;
	at->foreign_attention += foreign ? flops : 0;
	at->blocks += layer > at->layer;
	at->layer = layer;
}

/* Returns the place where a task runs that belongs to `owner`. The first place runs what no device can, and
 * what has no place among ranks. */
static int place_of(const struct smalti_counting *counting, const struct smalti_op *op, int owner)
{
	if (counting->devices && !smalti_op_device(op))
		return 0;
	if (owner == SMALTI_ANYWHERE)
		return counting->devices ? SMALTI_ANYWHERE : 0;
	return owner % counting->places;
}

/* Tells whether a task only makes a weight's form, as its first reader would. */
static bool makes_a_weight(const struct smalti_op *op, struct smalti_tile *const *tiles, int owner)
{
	return owner == SMALTI_ANYWHERE && op->buffer_kinds == 1 && tiles[0] && tiles[0]->formed;
}

void smalti_counting_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			    struct smalti_tile *const *tiles, const void *arguments)
{
	struct smalti_counting *counting = task_group->session->counting;
	const int owner = smalti_places_own(op, tiles, arguments, task_group->place);
	const int place = place_of(counting, op, owner);
	bool foreign = false, goes_on = false;
	if (makes_a_weight(op, tiles, owner))
		return;
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++)
			if (tiles[index]) {
				const enum smalti_access access = smalti_op_access(op, kind, arguments);
				foreign = use(task_group, tiles[index], access, place) || foreign;
				goes_on = goes_on || access == SMALTI_UPDATE;
			}
	const double flops = op->flops(arguments);
	count(&counting->all, flops, false, counting->layer);
	if (place != SMALTI_ANYWHERE)
		count(&counting->at[place], flops, foreign && goes_on, counting->layer);
}
