/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/place_facts.h"

/* Gathers the facts that plans over ranks use (ranks/ranks.h), if they are wanted on any rank and not there
 * yet, and keeps them with the session: for each rank the rate of its devices or, without devices, of its
 * CPUs together, by its own performance models and on the tasks that all ranks have run; the smallest of its
 * memories; and the links, which it measures by messages. All ranks call it before the first task. -1 on all
 * ranks if one fails. Does nothing with one rank. */
int smalti_rank_facts_gather(struct smalti_session *session, bool wanted, struct smalti_error *error);
/* Copies the gathered facts. */
int smalti_rank_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			 struct smalti_error *error);
