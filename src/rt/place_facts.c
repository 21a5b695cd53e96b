/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/place_facts.h"
#include "rt/places.h"
#include "rt/task.h"

#include <starpu.h>

/* Those that transformers are spread over by default: devices, or CPUs where there is none. */
static int find_workers(const struct smalti_session *session, int *workers)
{
	int count = 0;
	for (int worker = 0; worker < session->workers; worker++)
		if (session->device_counts.sum == 0 || smalti_session_device(session, worker))
			workers[count++] = worker;
	return count;
}

/* Each worker's: as measured, else the speed on paper, as many times as that was wrong for others. */
static void find_rates(const struct smalti_session *session, double *rates, bool *measured)
{
	int workers[STARPU_NMAXWORKERS] = {0};
	double found[STARPU_NMAXWORKERS], reached = 0, on_paper = 0;
	const int count = find_workers(session, workers);
	smalti_task_rates(session->codelets, workers, count, found);
	for (int i = 0; i < count; i++) {
		rates[workers[i]] = found[i];
		reached += found[i];
		on_paper += found[i] > 0 ? session->speeds[workers[i]] : 0;
	}
	*measured = reached > 0;
	for (int worker = 0; worker < session->workers; worker++)
		if (rates[worker] == 0)
			rates[worker] = session->speeds[worker] * (*measured ? reached / on_paper : 1);
}

static int64_t memory_of(const struct smalti_session *session, unsigned node)
{
	return node == STARPU_MAIN_RAM ? session->memory - SMALTI_PROGRAM_BYTES
				       : smalti_device_tile_bytes(node);
}

/* StarPU counts in MB/s and µs. */
static struct smalti_link_fact link_of(unsigned from, unsigned to)
{
	return (struct smalti_link_fact){1e6 * starpu_transfer_bandwidth(from, to),
					 1e-6 * starpu_transfer_latency(from, to)};
}

static void look(const struct smalti_session *session, const double *rates, struct smalti_place_facts *facts)
{
	for (int i = 0; i < facts->count; i++) {
		const unsigned node = smalti_places_node(session->places, i);
		facts->place[i].memory = memory_of(session, node);
		for (int worker = 0; worker < session->workers; worker++)
			if (starpu_worker_get_memory_node((unsigned)worker) == node)
				facts->place[i].rate += rates[worker];
		for (int to = 0; to < facts->count; to++)
			if (to != i)
				facts->link[i * facts->count + to] =
				    link_of(node, smalti_places_node(session->places, to));
	}
}

int smalti_place_facts_of(const struct smalti_session *session, struct smalti_place_facts *facts,
			  struct smalti_error *error)
{
	const int count = smalti_session_place_count(session);
	*facts = (struct smalti_place_facts){.count = count};
	facts->place = smalti_calloc(count, sizeof(*facts->place), error);
	facts->link = smalti_calloc((int64_t)count * count, sizeof(*facts->link), error);
	SCOPED(free) double *rates = smalti_calloc(session->workers, sizeof(*rates), error);
	if (!facts->place || !facts->link || !rates) {
		smalti_place_facts_free(facts);
		return -1;
	}
	if (session->plain)
		facts->place[0].rate = 1;
	else {
		find_rates(session, rates, &facts->measured);
		look(session, rates, facts);
	}
	return 0;
}

void smalti_place_facts_free(struct smalti_place_facts *facts)
{
	free(facts->place);
	free(facts->link);
	*facts = (struct smalti_place_facts){.count = 0};
}
