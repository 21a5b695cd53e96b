/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/task_group.h"

/* The processes of an MPI job, numbered ranks, that share the tasks of a session: all insert the same tasks
 * in the same order, and each executes those of its own place (rt/places.h), a rank being one place.
 * StarPU-MPI moves what a task reads to its rank. Where MPI was not started, and in a build without it
 * (src/rt/ranks_none.c), there is one rank. */

struct smalti_link_fact;
struct smalti_tile;

enum { SMALTI_MOST_RANKS = 64 }; /* a tile has a bit for each */

/* For programs: starts MPI if mpirun or its like has started this process. From then on sessions are shared
 * by all ranks. `give_up` is called where this rank cannot go on and others would wait for it for ever; it
 * says why, and all processes are ended. */
int smalti_ranks_start(void (*give_up)(const struct smalti_error *cause), struct smalti_error *error);
/* Ends MPI, after the last session. */
void smalti_ranks_stop(void);

/* Whether mpirun or its like has started several of this process. */
bool smalti_ranks_launched(void);
int smalti_ranks_count(void);
int smalti_ranks_own(void);    /* the number of this process */
int smalti_ranks_beside(void); /* how many share this process's machine, itself included */
/* Ends all processes, if there are several and the cause is one that others do not have, too: memory or a
 * device. Where tasks are inserted, they would wait for this rank for ever. */
void smalti_ranks_give_up(const struct smalti_error *cause);

/* Between the ranks' inserting threads; all ranks call them in the same order. @{ */

/* What the ranks have to be at one about. */
struct smalti_ranks_vote {
	uint64_t digest; /* has to be the same */
	bool any;        /* becomes true where one says so */
	/* Called now and then while other ranks are waited for, unless NULL. */
	void (*idle)(void *user);
	void *user;
};
/* -1, with the failure of the first rank that has one, unless all come with status 0 and the same digest. */
int smalti_ranks_agree(int status, struct smalti_ranks_vote *vote, struct smalti_error *error);
int64_t smalti_ranks_least(int64_t value);
/* From rank 0 to all others, which free() it. Meanwhile they call `idle` now and then. NULL with an error. */
void smalti_ranks_tell(const void *message, int64_t bytes);
void *smalti_ranks_hear(int64_t *bytes, void (*idle)(void *user), void *user, struct smalti_error *error);
/* `bytes` of each rank come to all, one behind the other. */
void smalti_ranks_gather(const void *own, int64_t bytes, void *all);
/* @} */

/* How a job has ended on the other ranks, as rank 0 hears it. */
struct smalti_ranks_outcomes;
/* Of the job of this number; on other ranks, and where there is one, NULL. */
struct smalti_ranks_outcomes *smalti_ranks_expect(int64_t job);
/* Whether the job has ended everywhere: then the first failure is `error`, and *outcomes is freed. NULL: yes.
 */
bool smalti_ranks_heard(struct smalti_ranks_outcomes **outcomes, struct smalti_error *error);
/* To rank 0, from another. */
void smalti_ranks_report(int64_t job, const struct smalti_error *outcome);

/* Jobs that cannot succeed, so that no rank does anything more for them. @{ */
/* Says it of this one to all other ranks. */
void smalti_ranks_warn(int64_t job);
/* One that another rank has said it of; -1: there is none, or it is known. */
int64_t smalti_ranks_warned(void);
/* On all ranks, when no job is active: takes what is still on its way. */
void smalti_ranks_settle(void);
/* @} */

/* With StarPU running on all ranks: behind starpu_init() and before starpu_shutdown(). `speed` is that of
 * this rank's fastest worker. `bind`: the thread that talks to other ranks keeps to one core, unless
 * STARPU_MPI_NOBIND says otherwise. @{ */
int smalti_ranks_open(double speed, bool bind, struct smalti_error *error);
void smalti_ranks_close(void);
/* @} */
double smalti_ranks_speed(int place);
/* Measures the links between all ranks, by messages of StarPU-MPI's: links[from · count + to]. Called on all
 * ranks, before the first task; some milliseconds for each other rank where links are fast. */
int smalti_ranks_links(struct smalti_link_fact *links, struct smalti_error *error);

/* The rank of a place; what has none is rank 0's. */
int smalti_ranks_of(int place);
/* A task that rank `rank` executes is about to be inserted: has what it reads brought there, and what it
 * writes forgotten elsewhere. Called on all ranks. */
void smalti_ranks_bring(struct smalti_tile *tile, enum smalti_access access, int rank, int priority);
