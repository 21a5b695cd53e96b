/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/place_facts.h"
#include "ranks/ranks.h"
#include "rt/places.h"
#include "rt/rank_facts.h"
#include "rt/task.h"

#include <starpu.h>

static int find_workers(const struct smalti_session *session, int *workers)
{
	int count = 0;
	for (int worker = 0; worker < session->workers; worker++)
		if (session->device_counts.sum == 0 || smalti_session_device(session, worker))
			workers[count++] = worker;
	return count;
}

int smalti_worker_lists_new(const struct smalti_session *session, struct smalti_worker_lists *lists,
			    struct smalti_error *error)
{
	lists->count = 0;
	lists->worker = smalti_calloc(session->workers, sizeof(*lists->worker), error);
	lists->list = smalti_calloc(session->workers, sizeof(*lists->list), error);
	int status = lists->worker && lists->list ? 0 : -1;
	if (status == 0)
		lists->count = find_workers(session, lists->worker);
	for (int i = 0; i < lists->count && status == 0; i++)
		status = smalti_task_list(session->codelets, lists->worker[i], &lists->list[i], error);
	if (status < 0)
		smalti_worker_lists_free(lists);
	return status;
}

void smalti_worker_lists_free(struct smalti_worker_lists *lists)
{
	for (int i = 0; i < lists->count; i++)
		smalti_task_list_free(&lists->list[i]);
	free(lists->worker);
	free(lists->list);
	*lists = (struct smalti_worker_lists){0, NULL, NULL};
}

/* Finds each worker's rate: measured, else by its speed on paper. */
static int find_rates(const struct smalti_session *session, double *rates, bool *measured,
		      struct smalti_error *error)
{
	struct smalti_worker_lists lists;
	SCOPED(free) double *found = smalti_calloc(session->workers, sizeof(*found), error);
	if (!found || smalti_worker_lists_new(session, &lists, error) < 0)
		return -1;
	smalti_rates_compare(lists.list, lists.count, found);
	for (int i = 0; i < lists.count; i++)
		rates[lists.worker[i]] = found[i];
	smalti_worker_lists_free(&lists);
	*measured = smalti_rates_complete(session->speeds, session->workers, rates);
	return 0;
}

int64_t smalti_place_facts_memory(const struct smalti_session *session, int place)
{
	const unsigned node = smalti_places_node(session->places, place);
	return node == STARPU_MAIN_RAM ? session->memory - SMALTI_PROGRAM_BYTES
				       : smalti_device_shares(node).tiles;
}

/* Converts StarPU's MB/s and µs. */
static struct smalti_link_fact link_of(unsigned from, unsigned to)
{
	return (struct smalti_link_fact){1e6 * starpu_transfer_bandwidth(from, to),
					 1e-6 * starpu_transfer_latency(from, to)};
}

static void look(const struct smalti_session *session, const double *rates, struct smalti_place_facts *facts)
{
	for (int i = 0; i < facts->count; i++) {
		const unsigned node = smalti_places_node(session->places, i);
		facts->place[i].memory = smalti_place_facts_memory(session, i);
		for (int worker = 0; worker < session->workers; worker++)
			if (starpu_worker_get_memory_node((unsigned)worker) == node)
				facts->place[i].rate += rates[worker];
		for (int to = 0; to < facts->count; to++)
			if (to != i)
				facts->link[i * facts->count + to] =
				    link_of(node, smalti_places_node(session->places, to));
	}
}

int smalti_place_facts_new(struct smalti_place_facts *facts, int count, struct smalti_error *error)
{
	*facts = (struct smalti_place_facts){.count = count};
	facts->place = smalti_calloc(count, sizeof(*facts->place), error);
	facts->link = smalti_calloc((int64_t)count * count, sizeof(*facts->link), error);
	if (facts->place && facts->link)
		return 0;
	smalti_place_facts_free(facts);
	return -1;
}

int smalti_place_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			  struct smalti_error *error)
{
	if (smalti_ranks_count() > 1)
		return smalti_rank_facts_of(session, facts, error);
	SCOPED(free) double *rates = smalti_calloc(session->workers, sizeof(*rates), error);
	if (!rates || smalti_place_facts_new(facts, smalti_session_place_count(session), error) < 0)
		return -1;
	if (session->sequential)
		facts->place[0].rate = 1;
	else if (find_rates(session, rates, &facts->measured, error) < 0) {
		smalti_place_facts_free(facts);
		return -1;
	} else
		look(session, rates, facts);
	return 0;
}

void smalti_place_facts_free(struct smalti_place_facts *facts)
{
	free(facts->place);
	free(facts->link);
	*facts = (struct smalti_place_facts){.count = 0};
}
