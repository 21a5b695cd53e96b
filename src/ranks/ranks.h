/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The processes of an MPI job, numbered ranks, share the tasks of a session. All insert the same tasks in the
 * same order, and each executes those of its place (rt/places.h); a rank is one place. StarPU-MPI moves what
 * a task reads to its rank. If MPI was not started, and in a build without it (src/ranks/none.c), there is
 * one rank. */

/* A link between two ranks. */
struct smalti_link_fact {
	double bandwidth, latency; /* bytes a second; seconds */
};

enum { SMALTI_MAX_RANKS = 64 }; /* a tile has a bit for each */

/* Starts MPI if mpirun or its like has started this process; for programs. From then on sessions are shared
 * by all ranks. `give_up` is called where this rank cannot go on and others would wait for it for ever; it
 * says why, and all processes are ended. */
int smalti_ranks_start(void (*give_up)(const struct smalti_error *cause), struct smalti_error *error);
/* Ends MPI, after the last session. */
void smalti_ranks_stop(void);

/* Tells whether mpirun or its like has started several of this process. */
bool smalti_ranks_launched(void);
int smalti_ranks_count(void);
int smalti_ranks_own(void);    /* the number of this process */
int smalti_ranks_beside(void); /* the number of ranks on this process's machine, itself included */
/* Ends all processes, if there are several and the cause is one that other ranks may not have: memory or a
 * device. While tasks are inserted, the others would wait for this rank for ever. */
void smalti_ranks_give_up(const struct smalti_error *cause);

/* Connect the ranks' inserting threads; all ranks call them in the same order. @{ */

/* What the ranks must agree on. */
struct smalti_ranks_vote {
	uint64_t digest; /* must be equal on all ranks */
	bool any;        /* becomes true if it is on any rank */
	/* Called regularly while other ranks are waited for; NULL: nothing is. */
	void (*idle)(void *user);
	void *user;
};
/* Returns -1, with the failure of the first rank that has one, unless all ranks have status 0 and equal
 * digests. error: NULL is allowed after an earlier failure. */
int smalti_ranks_agree(int status, struct smalti_ranks_vote *vote, struct smalti_error *error);
int64_t smalti_ranks_min(int64_t value);
/* Send a message from rank 0 to all others, which free() it and call `idle` while they wait. NULL with an
 * error. */
void smalti_ranks_broadcast(const void *message, int64_t bytes);
void *smalti_ranks_receive(int64_t *bytes, void (*idle)(void *user), void *user, struct smalti_error *error);
/* Gathers `bytes` of each rank on all ranks, in the ranks' order. */
void smalti_ranks_gather(const void *own, int64_t bytes, void *all);
/* @} */

/* The outcomes of a job on the other ranks, for rank 0. */
struct smalti_ranks_outcomes;
/* Expects the outcomes of the job with this number; NULL on other ranks, and with one rank. */
struct smalti_ranks_outcomes *smalti_ranks_expect(int64_t job);
/* Tells whether the job has ended on all ranks: `error` is then the first failure, and *outcomes is freed.
 * NULL: yes. */
bool smalti_ranks_outcomes_received(struct smalti_ranks_outcomes **outcomes, struct smalti_error *error);
/* Reports to rank 0, from another. */
void smalti_ranks_report(int64_t job, const struct smalti_error *outcome);

/* These handle jobs that cannot succeed, so that ranks do nothing more for them. @{ */
/* Warns all other ranks of this job. */
void smalti_ranks_warn(int64_t job);
/* Returns a job of another rank's warning; -1: none is left. */
int64_t smalti_ranks_warned(void);
/* Receives what is still on its way. On all ranks, when no job is active. */
void smalti_ranks_settle(void);
/* @} */

/* Start and stop StarPU-MPI while StarPU runs on all ranks: after starpu_init() and before starpu_shutdown().
 * `speed` is that of this rank's fastest worker. With `bind` the thread that communicates keeps to one core,
 * unless STARPU_MPI_NOBIND says otherwise. @{ */
int smalti_ranks_open(double speed, bool bind, struct smalti_error *error);
void smalti_ranks_close(void);
/* @} */
double smalti_ranks_speed(int place);
/* Measures the links between all ranks, by messages of StarPU-MPI: links[from · count + to]. All ranks call
 * it before the first task; some milliseconds for each other rank where links are fast. */
int smalti_ranks_links(struct smalti_link_fact *links, struct smalti_error *error);

/* Returns the rank of a place (rt/places.h); anywhere is rank 0's. */
int smalti_ranks_of(int place);
/* Copies what a StarPU handle holds from one rank to another. All ranks call it in the same order, before the
 * task that reads it there is inserted. */
void smalti_ranks_copy(void *handle, int from, int to, int priority);
