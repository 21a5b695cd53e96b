/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/place_facts.h"

/* What plans over ranks go by (rt/ranks.h): of each rank the rate of its devices or, where it has none, its
 * CPUs together, from its own performance models and on the tasks that all ranks have run; the least of its
 * memories; and the links, which messages are sent over to measure them. Called by all ranks, before the
 * first task; keeps it with the session. -1, on all of them, where one fails. Nothing where there is one
 * rank. */
int smalti_rank_facts_gather(struct smalti_session *session, struct smalti_error *error);
/* What was gathered. */
int smalti_rank_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			 struct smalti_error *error);
