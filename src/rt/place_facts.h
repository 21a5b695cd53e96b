/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/rates.h"
#include "rt/session.h"

/* What plans go by of a session's places (rt/places.h). */
struct smalti_place_fact {
	double
	    rate; /* of the transformer's tasks: operations a second of all workers together; 0: no worker */
	int64_t memory; /* bytes that tiles may take */
};
struct smalti_link_fact {
	double bandwidth, latency; /* bytes a second; seconds */
};
struct smalti_place_facts {
	int count;
	bool ranks;    /* each place is a rank; else place 0 are the CPUs of one process */
	bool measured; /* some rates are; else all are on paper */
	struct smalti_place_fact *place;
	struct smalti_link_fact *link; /* [from · count + to] */
};

/* All 0. */
int smalti_place_facts_new(struct smalti_place_facts *facts, int count, struct smalti_error *error);
/* Rates from StarPU's performance models as earlier sessions have left them, so that all requests of one go
 * by the same. A worker that they do not know has its speed on paper, as many times as that was wrong for the
 * others. Links from StarPU's model of the bus. Of ranks, what smalti_rank_facts_gather() has found. Free
 * with smalti_place_facts_free(). */
int smalti_place_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			  struct smalti_error *error);
void smalti_place_facts_free(struct smalti_place_facts *facts);

/* The workers of this process that transformers are spread over by default, devices or, where there is none,
 * CPUs, and what each has run. */
struct smalti_worker_lists {
	int count;
	int *worker;                   /* of each */
	struct smalti_task_list *list; /* of each */
};
int smalti_worker_lists_new(const struct smalti_session *session, struct smalti_worker_lists *lists,
			    struct smalti_error *error);
void smalti_worker_lists_free(struct smalti_worker_lists *lists);
/* Bytes that tiles may take in one of this process's memories. */
int64_t smalti_place_facts_memory(const struct smalti_session *session, int place);
