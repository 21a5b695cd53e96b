/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/counting.h"
#include "rt/places.h"
#include "rt/pool.h"
#include "rt/session.h"
#include "rt/tile_forms.h"

enum { OWN, FOREIGN };

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

/* A turn's tasks may run in any order: nothing that they release goes before it is over. */
static void raise_most(struct smalti_counting *counting)
{
	counting->most = smalti_max(counting->most, counting->at_turn + counting->since_turn);
}

void smalti_counting_turns(struct smalti_counting *counting, const struct smalti_tile *turn)
{
	if (counting->turn == turn->number) { /* what came before has ended, if it waited for the same */
		counting->at_turn = counting->alive;
		counting->since_turn = 0;
	}
	counting->turn = turn->number;
}

void smalti_counting_mark(struct smalti_counting *counting)
{
	counting->marked = counting->alive;
	counting->alive = counting->at_turn = counting->since_turn = counting->most = 0;
}

static void hold(struct smalti_counted *at, double bytes, int whose)
{
	at->held[whose] += bytes;
	if (at->held[OWN] + at->held[FOREIGN] > at->own + at->foreign) {
		at->own = at->held[OWN];
		at->foreign = at->held[FOREIGN];
	}
}

void smalti_counting_makes(struct smalti_tile *tile)
{
	struct smalti_counting *counting = tile->counting;
	counting->alive += bytes_of(tile);
	counting->since_turn += bytes_of(tile);
	raise_most(counting);
	hold(&counting->all, (double)bytes_of(tile), OWN);
}

/* Adds the copies of a tile to what their places hold, or takes them from it. */
static void hold_copies(const struct smalti_tile *tile, double sign)
{
	struct smalti_counting *counting = tile->counting;
	for (int place = 0; place < counting->places; place++)
		if (smalti_bits_has(&tile->holders, place))
			hold(&counting->at[place], sign * (double)bytes_of(tile),
			     place == tile->rank ? OWN : FOREIGN);
}

void smalti_counting_uploads(struct smalti_tile *tile)
{
	tile->holders = tile->counting->devices ? smalti_bits_one(0) : smalti_bits_all();
	hold_copies(tile, 1);
}

void smalti_counting_releases(const struct smalti_tile *tile)
{
	struct smalti_counting *counting = tile->counting;
	if (tile->formed)
		return;
	hold_copies(tile, -1);
	hold(&counting->all, -(double)bytes_of(tile), OWN);
	counting->alive -= bytes_of(tile);
}

/* A weight is counted once at each place, and once of all. */
static void count_weight(struct smalti_counting *counting, struct smalti_tile *tile, int place)
{
	const int all = counting->places;
	if (!smalti_bits_has(&tile->holders, all)) {
		smalti_bits_add(&tile->holders, all);
		counting->all.weights += (double)smalti_formed_bytes(
		    tile->formed, counting->devices ? SMALTI_DEVICE_GPU : SMALTI_DEVICE_CPU);
	}
	if (place != SMALTI_ANYWHERE && !smalti_bits_has(&tile->holders, place))
		counting->at[place].weights +=
		    (double)smalti_formed_bytes(tile->formed, smalti_counting_kind(counting, place));
}

/* A task at a place uses a tile; returns whether it is keys that were made elsewhere. */
static bool use(struct smalti_task_group *task_group, struct smalti_tile *tile, enum smalti_access access,
		int place)
{
	struct smalti_counting *counting = tile->counting;
	const bool foreign = tile->move == SMALTI_MOVE_KEYS && tile->rank != place;
	if (tile->formed) {
		count_weight(counting, tile, place);
		smalti_moves_count(task_group, tile, access, place);
		return false;
	}
	hold_copies(tile, -1);
	smalti_moves_count(task_group, tile, access, place);
	if (access != SMALTI_READ)
		tile->rank = place;
	hold_copies(tile, 1);
	return access == SMALTI_READ && foreign;
}

static void count(struct smalti_counted *at, double flops, bool foreign, int64_t layer)
{
	at->flops += flops;
	at->operations++;
	at->foreign_attention += foreign ? flops : 0;
	at->blocks += layer > at->layer;
	at->layer = layer;
}

void smalti_counting_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			    struct smalti_tile *const *tiles, const void *arguments)
{
	struct smalti_counting *counting = task_group->session->counting;
	const int owner = smalti_places_own(op, tiles, arguments, task_group->place);
	const int place = counting->devices && !smalti_op_device(op)      ? 0
			  : owner == SMALTI_ANYWHERE && counting->devices ? SMALTI_ANYWHERE
			  : owner == SMALTI_ANYWHERE                      ? 0
									  : owner % counting->places;
	bool foreign = false;
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++)
			if (tiles[index] &&
			    use(task_group, tiles[index], smalti_op_access(op, kind, arguments), place))
				foreign = true;
	const double flops = op->flops(arguments);
	count(&counting->all, flops, false, counting->layer);
	if (place != SMALTI_ANYWHERE)
		count(&counting->at[place], flops, foreign, counting->layer);
}
