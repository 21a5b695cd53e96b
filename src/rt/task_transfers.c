/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task_transfers.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/places.h"
#include "rt/session.h"
#include "rt/tile.h"
#include "rt/tile_forms.h"

const char *const smalti_transfer_kind_names[SMALTI_TRANSFER_KINDS] = {
    "other", "keys", "heads", "sums", "stream", "modulation", "halo", "weights"};

static void add(struct smalti_task_group *task_group, int place, enum smalti_transfer_kind kind,
		int64_t bytes)
{
	struct smalti_task_transfers *transfers = &task_group->transfers;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (task_group->session->counting) {
		task_group->session->counting->at[place].transfers[kind] += (double)bytes;
		return;
	}
	const int64_t stage = task_group->now.stage;
	transfers->places = smalti_session_place_count(task_group->session);
	if (smalti_grow_to(&transfers->bytes, &transfers->stages, stage,
			   transfers->places * (int64_t)(SMALTI_TRANSFER_KINDS * sizeof(*transfers->bytes)),
			   &error) < 0)
		smalti_task_group_break(task_group, &error);
	else
		transfers->bytes[(stage * transfers->places + place) * SMALTI_TRANSFER_KINDS + kind] +=
		    (double)bytes;
}

static enum smalti_device_kind kind_of(const struct smalti_session *session, int place)
{
	if (session->counting)
		return smalti_counting_kind(session->counting, place);
	return smalti_ranks_count() > 1 ? SMALTI_DEVICE_CPU
					: smalti_memory_kind(smalti_places_node(session->places, place));
}

bool smalti_task_transfers_count(struct smalti_task_group *task_group, struct smalti_tile *tile,
				 enum smalti_access access, int place)
{
	const bool known = place != SMALTI_ANYWHERE;
	const bool missing = known && !smalti_bits_has(&tile->valid_places, place);
	const bool comes =
	    missing && access != SMALTI_WRITE && smalti_bits_any(&tile->valid_places) && !tile->formed;
	if (tile->formed) {
		if (missing)
			add(task_group, place, SMALTI_TRANSFER_WEIGHTS,
			    smalti_formed_bytes(tile->formed, kind_of(task_group->session, place)));
		if (known)
			smalti_bits_add(&tile->valid_places, place);
		return comes;
	}
	if (comes)
		add(task_group, place, tile->transfer_kind, tile->rows * tile->row_bytes);
	if (smalti_ranks_count() > 1 && !tile->counting) /* smalti_tile_bring() updates the valid places */
		return comes;
	if (access != SMALTI_READ)
		tile->valid_places = known ? smalti_bits_one(place) : (struct smalti_bits){{0}};
	else if (known && smalti_bits_any(&tile->valid_places))
		smalti_bits_add(&tile->valid_places, place);
	return comes;
}

void smalti_task_transfers_plan(struct smalti_task_group *task_group, int place,
				const double bytes[SMALTI_TRANSFER_KINDS])
{
	struct smalti_task_transfers *transfers = &task_group->transfers;
	struct smalti_error error = SMALTI_NO_ERROR;
	const int places = smalti_session_place_count(task_group->session);
	if (!transfers->planned)
		transfers->planned = smalti_calloc(places * (int64_t)SMALTI_TRANSFER_KINDS,
						   sizeof(*transfers->planned), &error);
	if (!transfers->planned) {
		smalti_task_group_break(task_group, &error);
		return;
	}
	memcpy(transfers->planned + place * SMALTI_TRANSFER_KINDS, bytes,
	       SMALTI_TRANSFER_KINDS * sizeof(*bytes));
	transfers->places = places;
}

const double *smalti_task_transfers_at(const struct smalti_task_transfers *transfers, int64_t stage,
				       int place)
{
	static const double nothing[SMALTI_TRANSFER_KINDS];
	return stage < transfers->stages
		   ? transfers->bytes + (stage * transfers->places + place) * SMALTI_TRANSFER_KINDS
		   : nothing;
}

void smalti_task_transfers_free(struct smalti_task_transfers *transfers)
{
	free(transfers->bytes);
	free(transfers->planned);
}
