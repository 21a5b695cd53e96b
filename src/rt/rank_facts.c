/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/rank_facts.h"
#include "ranks/ranks.h"
#include "rt/places.h"

/* The facts that a rank reports of itself. */
struct rank_fact {
	double on_paper; /* of the rank's workers */
	int64_t memory, times;
};

static int look_at_own(const struct smalti_session *session, struct rank_fact *own,
		       struct smalti_task_list *list, struct smalti_error *error)
{
	struct smalti_worker_lists lists;
	*own = (struct rank_fact){.memory = INT64_MAX};
	if (smalti_worker_lists_new(session, &lists, error) < 0)
		return -1;
	for (int i = 0; i < lists.count; i++)
		own->on_paper += session->speeds[lists.worker[i]];
	for (int place = 0; place < smalti_places_count(session->places); place++)
		own->memory = smalti_min(own->memory, smalti_place_facts_memory(session, place));
	const int status = smalti_rates_together(lists.list, lists.count, list, error);
	smalti_worker_lists_free(&lists);
	own->times = list->count;
	return status;
}

/* Gathers the lists of all ranks in one memory, each as long as the longest. */
static int gather_lists(const struct rank_fact *ranks, int count, const struct smalti_task_list *own,
			struct smalti_task_list *lists, struct smalti_error *error)
{
	int64_t max = 1;
	for (int i = 0; i < count; i++)
		max = smalti_max(max, ranks[i].times);
	SCOPED(free) struct smalti_task_time *padded = smalti_calloc(max, sizeof(*padded), error);
	struct smalti_task_time *all = smalti_calloc(count * max, sizeof(*all), error);
	if (smalti_ranks_agree(padded && all ? 0 : -1, NULL, error) < 0 || !padded || !all) {
		free(all);
		return -1;
	}
	if (own->count)
		memcpy(padded, own->time, (size_t)own->count * sizeof(*padded));
	smalti_ranks_gather(padded, max * (int64_t)sizeof(*padded), all);
	for (int i = 0; i < count; i++)
		lists[i] = (struct smalti_task_list){ranks[i].times, all + i * max};
	return 0;
}

static int find_rates(const struct rank_fact *ranks, const struct smalti_task_list *own,
		      struct smalti_place_facts *facts, struct smalti_error *error)
{
	struct smalti_task_list lists[SMALTI_MAX_RANKS] = {{0, NULL}};
	double rates[SMALTI_MAX_RANKS] = {0}, on_paper[SMALTI_MAX_RANKS];
	if (gather_lists(ranks, facts->count, own, lists, error) < 0)
		return -1;
	for (int i = 0; i < facts->count; i++)
		on_paper[i] = ranks[i].on_paper;
	smalti_rates_compare(lists, facts->count, rates);
	facts->measured = smalti_rates_complete(on_paper, facts->count, rates);
	for (int i = 0; i < facts->count; i++)
		facts->place[i] = (struct smalti_place_fact){rates[i], ranks[i].memory};
	free(lists[0].time);
	return 0;
}

static int gather(const struct smalti_session *session, struct smalti_place_facts *facts,
		  struct smalti_error *error)
{
	struct smalti_task_list list = {0, NULL};
	struct rank_fact own, ranks[SMALTI_MAX_RANKS];
	int status = smalti_place_facts_new(facts, smalti_ranks_count(), error);
	if (status == 0)
		status = look_at_own(session, &own, &list, error);
	status = smalti_ranks_agree(status, NULL, error);
	if (status == 0) {
		smalti_ranks_gather(&own, sizeof(own), ranks);
		facts->ranks = true;
		status = find_rates(ranks, &list, facts, error);
	}
	smalti_task_list_free(&list);
	return status < 0 ? -1 : smalti_ranks_links(facts->link, error);
}

int smalti_rank_facts_gather(struct smalti_session *session, bool wanted, struct smalti_error *error)
{
	struct smalti_ranks_vote vote = {.any = wanted};
	if (smalti_ranks_agree(0, &vote, error) < 0)
		return -1;
	if (smalti_ranks_count() == 1 || !vote.any || session->rank_facts)
		return 0;
	struct smalti_place_facts *facts = smalti_calloc(1, sizeof(*facts), error);
	if (smalti_ranks_agree(facts ? 0 : -1, NULL, error) == 0 && facts &&
	    gather(session, facts, error) == 0) {
		session->rank_facts = facts;
		return 0;
	}
	if (facts)
		smalti_place_facts_free(facts);
	free(facts);
	return -1;
}

int smalti_rank_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			 struct smalti_error *error)
{
	const struct smalti_place_facts *known = session->rank_facts;
	if (!known)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "auto: the speed of ranks and links was not looked at when the program "
				   "started: name a strategy and shares");
	const size_t count = (size_t)known->count;
	if (smalti_place_facts_new(facts, known->count, error) < 0)
		return -1;
	memcpy(facts->place, known->place, count * sizeof(*facts->place));
	memcpy(facts->link, known->link, count * count * sizeof(*facts->link));
	facts->ranks = known->ranks;
	facts->measured = known->measured;
	return 0;
}
