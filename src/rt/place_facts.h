/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

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
	bool measured; /* some rates are; else all are on paper */
	struct smalti_place_fact *place;
	struct smalti_link_fact *link; /* [from · count + to] */
};

/* Rates from StarPU's performance models as earlier sessions have left them, so that all requests of one go
 * by the same. A worker that they do not know has its speed on paper, as many times as that was wrong for the
 * others. Links from StarPU's model of the bus. Free with smalti_place_facts_free(). */
int smalti_place_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			  struct smalti_error *error);
void smalti_place_facts_free(struct smalti_place_facts *facts);
