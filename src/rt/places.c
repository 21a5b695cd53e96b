/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/places.h"

#include "ranks/ranks.h"
#include "rt/session.h"
#include "rt/task_message.h"

#include <starpu.h>

enum { WORD_BITS = 32, WORDS = (STARPU_NMAXWORKERS - 1) / WORD_BITS + 1 };

struct place {
	enum smalti_device_kind kind;
	unsigned node;
	bool has_workers;
	uint32_t workers[WORDS]; /* bit w: worker w computes here */
};

struct smalti_places {
	int count;
	struct place place[STARPU_MAXNODES];
};

enum smalti_device_kind smalti_memory_kind(unsigned node)
{
	return smalti_devices_own(node) ? SMALTI_DEVICE_GPU : SMALTI_DEVICE_CPU;
}

static bool has_worker(const struct place *place, unsigned worker)
{
	return place->workers[worker / WORD_BITS] >> worker % WORD_BITS & 1;
}

static void add_workers(struct place *place, unsigned node)
{
	for (unsigned worker = 0; worker < starpu_worker_get_count(); worker++)
		if (starpu_worker_get_memory_node(worker) == node) {
			place->workers[worker / WORD_BITS] |= 1u << worker % WORD_BITS;
			place->has_workers = true;
		}
}

struct smalti_places *smalti_places_new(struct smalti_error *error)
{
	struct smalti_places *places = smalti_calloc(1, sizeof(*places), error);
	for (unsigned node = 0; places && node < starpu_memory_nodes_get_count(); node++) {
		struct place *place = &places->place[places->count];
		place->kind = smalti_memory_kind(node);
		place->node = node;
		if (place->kind == SMALTI_DEVICE_CPU && node != STARPU_MAIN_RAM)
			continue; /* a disk */
		add_workers(place, node);
		places->count++;
	}
	return places;
}

int smalti_places_count(const struct smalti_places *places)
{
	return places->count;
}

int smalti_places_smallest(const struct smalti_places *places, struct smalti_device_shares *shares)
{
	int smallest = 0;
	*shares = (struct smalti_device_shares){INT64_MAX, INT64_MAX, INT64_MAX};
	for (int place = 1; places && place < places->count; place++) {
		const struct smalti_device_shares its = smalti_device_shares(places->place[place].node);
		if (its.tiles >= shares->tiles)
			continue;
		*shares = its;
		smallest = place;
	}
	return smallest;
}

unsigned smalti_places_node(const struct smalti_places *places, int place)
{
	return places->place[place].node;
}

int smalti_places_worker(const struct smalti_places *places, int place, int worker)
{
	for (; worker < (int)starpu_worker_get_count(); worker++)
		if (has_worker(&places->place[place], (unsigned)worker))
			return worker;
	return -1;
}

double smalti_places_speed(const struct smalti_places *places, const double *speeds, int owner)
{
	const struct place *place = &places->place[owner == SMALTI_ANYWHERE ? 0 : owner % places->count];
	const bool anywhere = owner == SMALTI_ANYWHERE || !place->has_workers;
	double highest = 0;
	for (unsigned worker = 0; worker < starpu_worker_get_count(); worker++)
		if ((anywhere || has_worker(place, worker)) && speeds[worker] > highest)
			highest = speeds[worker];
	return highest;
}

/* Owners of what a task reads and writes, in the op's order. */
struct owners {
	int read, written; /* of the first tile that has an owner */
	bool updates;      /* whether it updates a tile without owner */
};

static void look_at(struct owners *owners, enum smalti_access access, int owner)
{
	int *first = access == SMALTI_READ ? &owners->read : &owners->written;
	if (*first == SMALTI_ANYWHERE)
		*first = owner;
	if (access == SMALTI_UPDATE && owner == SMALTI_ANYWHERE)
		owners->updates = true;
}

static int owner_of(const struct smalti_op *op, struct smalti_tile *const *tiles, const void *arguments)
{
	struct owners owners = {SMALTI_ANYWHERE, SMALTI_ANYWHERE, false};
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++)
			if (tiles[index])
				look_at(&owners, smalti_op_access(op, kind, arguments), tiles[index]->owner);
	return owners.written != SMALTI_ANYWHERE || owners.updates ? owners.written : owners.read;
}

static void own_outputs(const struct smalti_op *op, struct smalti_tile *const *tiles, const void *arguments,
			int owner)
{
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++)
			if (tiles[index] && smalti_op_access(op, kind, arguments) == SMALTI_WRITE &&
			    tiles[index]->owner == SMALTI_ANYWHERE)
				tiles[index]->owner = owner;
}

int smalti_places_own(const struct smalti_op *op, struct smalti_tile *const *tiles, const void *arguments,
		      int asked)
{
	const int owner = asked != SMALTI_ANYWHERE ? asked : owner_of(op, tiles, arguments);
	if (owner != SMALTI_ANYWHERE)
		own_outputs(op, tiles, arguments, owner);
	return owner;
}

void smalti_places_restrict(const struct smalti_session *session, int owner, struct starpu_task *task)
{
	if (owner == SMALTI_ANYWHERE || smalti_ranks_count() > 1)
		return;
	const struct place *place = &session->places->place[owner % session->places->count];
	if (!place->has_workers || (smalti_lost_has(&session->lost, place->node) && !session->reproducible))
		return;
	if (place->kind != SMALTI_DEVICE_CPU &&
	    (task->where == STARPU_CPU || !smalti_task_fits(task, place->node)))
		return;
	task->workerids = (uint32_t *)(uintptr_t)place->workers;
	task->workerids_len = WORDS;
}
