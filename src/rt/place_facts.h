/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ranks/ranks.h"
#include "rt/rates.h"
#include "rt/session.h"

/* Facts of a session's places (rt/places.h), which plans use. */
struct smalti_place_fact {
	double
	    rate; /* of the transformer's tasks: operations a second of all workers together; 0: no worker */
	int64_t memory; /* bytes that tiles may take */
};
struct smalti_place_facts {
	int count;
	bool ranks;    /* each place is a rank; else place 0 is one process's CPUs */
	bool measured; /* some rates are; else all are on paper */
	struct smalti_place_fact *place;
	struct smalti_link_fact *link; /* [from · count + to] */
};

/* Makes facts that are all 0. */
int smalti_place_facts_new(struct smalti_place_facts *facts, int count, struct smalti_error *error);
/* Finds the rates in StarPU's performance models as earlier sessions left them, so that all requests of a
 * session use the same rates. A worker without measurements has its speed on paper, times the others' ratio
 * of measured to paper speed. Links are from StarPU's model of the bus. Facts of ranks are from
 * smalti_rank_facts_gather(). Free with smalti_place_facts_free(). */
int smalti_place_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			  struct smalti_error *error);
void smalti_place_facts_free(struct smalti_place_facts *facts);

/* The workers of this process that transformers use by default, devices or, without devices, CPUs, and what
 * each has run. */
struct smalti_worker_lists {
	int count;
	int *worker;                   /* of each */
	struct smalti_task_list *list; /* of each */
};
int smalti_worker_lists_new(const struct smalti_session *session, struct smalti_worker_lists *lists,
			    struct smalti_error *error);
void smalti_worker_lists_free(struct smalti_worker_lists *lists);
/* Returns the bytes that tiles may take in one of this process's memories. */
int64_t smalti_place_facts_memory(const struct smalti_session *session, int place);
