/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/moves.h"
#include "rt/counting.h"
#include "rt/places.h"
#include "rt/ranks.h"
#include "rt/session.h"
#include "rt/tile.h"
#include "rt/tile_forms.h"

const char *const smalti_move_names[SMALTI_MOVES] = {"other",  "keys",       "heads", "sums",
						     "stream", "modulation", "halo",  "weights"};

static void add(struct smalti_task_group *task_group, int place, enum smalti_move move, int64_t bytes)
{
	struct smalti_moves *moves = &task_group->moves;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (task_group->session->counting) {
		task_group->session->counting->at[place].moves[move] += (double)bytes;
		return;
	}
	const int64_t stage = task_group->now.stage;
	moves->places = smalti_session_place_count(task_group->session);
	if (smalti_grow_to(&moves->bytes, &moves->stages, stage,
			   moves->places * (int64_t)(SMALTI_MOVES * sizeof(*moves->bytes)), &error) < 0)
		smalti_task_group_break(task_group, &error);
	else
		moves->bytes[(stage * moves->places + place) * SMALTI_MOVES + move] += (double)bytes;
}

static enum smalti_device_kind kind_of(const struct smalti_session *session, int place)
{
	if (session->counting)
		return smalti_counting_kind(session->counting, place);
	return smalti_ranks_count() > 1 ? SMALTI_DEVICE_CPU
					: smalti_memory_kind(smalti_places_node(session->places, place));
}

bool smalti_moves_count(struct smalti_task_group *task_group, struct smalti_tile *tile,
			enum smalti_access access, int place)
{
	const bool known = place != SMALTI_ANYWHERE;
	const bool missing = known && !smalti_bits_has(&tile->holders, place);
	const bool comes =
	    missing && access != SMALTI_WRITE && smalti_bits_any(&tile->holders) && !tile->formed;
	if (tile->formed) {
		if (missing)
			add(task_group, place, SMALTI_MOVE_WEIGHTS,
			    smalti_formed_bytes(tile->formed, kind_of(task_group->session, place)));
		if (known)
			smalti_bits_add(&tile->holders, place);
		return comes;
	}
	if (comes)
		add(task_group, place, tile->move, tile->rows * tile->row_bytes);
	if (smalti_ranks_count() > 1 && !tile->counting) /* smalti_ranks_bring() updates the holders */
		return comes;
	if (access != SMALTI_READ)
		tile->holders = known ? smalti_bits_one(place) : (struct smalti_bits){{0}};
	else if (known && smalti_bits_any(&tile->holders))
		smalti_bits_add(&tile->holders, place);
	return comes;
}

void smalti_moves_plan(struct smalti_task_group *task_group, int place, const double bytes[SMALTI_MOVES])
{
	struct smalti_moves *moves = &task_group->moves;
	struct smalti_error error = SMALTI_NO_ERROR;
	const int places = smalti_session_place_count(task_group->session);
	if (!moves->planned)
		moves->planned =
		    smalti_calloc(places * (int64_t)SMALTI_MOVES, sizeof(*moves->planned), &error);
	if (!moves->planned) {
		smalti_task_group_break(task_group, &error);
		return;
	}
	memcpy(moves->planned + place * SMALTI_MOVES, bytes, SMALTI_MOVES * sizeof(*bytes));
	moves->places = places;
}

const double *smalti_moves_at(const struct smalti_moves *moves, int64_t stage, int place)
{
	static const double nothing[SMALTI_MOVES];
	return stage < moves->stages ? moves->bytes + (stage * moves->places + place) * SMALTI_MOVES
				     : nothing;
}

void smalti_moves_free(struct smalti_moves *moves)
{
	free(moves->bytes);
	free(moves->planned);
}
