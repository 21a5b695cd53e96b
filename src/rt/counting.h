/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/tile.h"

/* The cost of a graph, counted as it is inserted into a session that runs nothing. Its tiles have no memory,
 * its places no workers. A graph inserts the same tasks as into any session, so the counts are those of a
 * run. */

/* The tiles of a place: those that it has made, and copies of others'. */
enum smalti_counted_tiles { SMALTI_COUNTED_OWN, SMALTI_COUNTED_FOREIGN, SMALTI_COUNTED_TILES };

/* Bytes of a place's tiles, whatever order tasks run in: now, at the last barrier, come since then, and the
 * most. Tasks behind a barrier wait for those before it (smalti_task_group_behind()). */
struct smalti_counted_bytes {
	int64_t now, at_barrier, since_barrier, max;
	int64_t barrier; /* the number of the tile that they wait for; 0: none */
	bool written;    /* it was since tasks last were put behind it */
};

/* The counts of one place (rt/places.h), or of all tasks wherever they run. */
struct smalti_counted {
	double flops, operations; /* by the rows of codelets.def */
	double foreign_attention; /* the flops of tasks that continue attention with keys made elsewhere */
	double blocks;            /* layers in which it computes something, of each branch */
	double transfers[SMALTI_TRANSFER_KINDS]; /* bytes that come to it: rt/task_transfers.h */
	double weights;                          /* bytes in the form that the place has */
	/* Bytes of tiles: now; when the layer began; made or received since then; and the most at a time, if
	 * the tasks of a layer run in any order. @{ */
	double held[SMALTI_COUNTED_TILES], at_layer[SMALTI_COUNTED_TILES], since_layer[SMALTI_COUNTED_TILES],
	    max[SMALTI_COUNTED_TILES];
	/* @} */
	int64_t layer, memory_layer;       /* counted last: for blocks, and for bytes */
	struct smalti_counted_bytes bytes; /* of one place */
};

struct smalti_counting {
	int places;
	bool devices;           /* whether the places from 1 on are devices; else all are main memories */
	int64_t newest, marked; /* numbers of tiles: the last one, and the last before the mark */
	int64_t layer;          /* counts how often smalti_task_group_at() named one */
	struct smalti_counted all, at[];
};

struct smalti_session;
struct smalti_task_group;

/* Opens a session that counts, beside other sessions; smalti_session_close() closes it. Its places are main
 * memory and devices' memories with `devices`, else ranks. */
struct smalti_session *smalti_session_open_counting(int places, bool devices, struct smalti_error *error);

/* Excludes the tiles that places have already from their `bytes`. */
void smalti_counting_mark(struct smalti_counting *counting);

/* Only src/rt calls what follows. */
struct smalti_counting *smalti_counting_new(int places, bool devices, struct smalti_error *error);
enum smalti_device_kind smalti_counting_kind(const struct smalti_counting *counting, int place);
void smalti_counting_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			    struct smalti_tile *const *tiles, const void *arguments);
void smalti_counting_makes(struct smalti_tile *tile);
void smalti_counting_uploads(struct smalti_tile *tile);
void smalti_counting_releases(const struct smalti_tile *tile);
void smalti_counting_behind(struct smalti_counting *counting, int place, const struct smalti_tile *barrier);
