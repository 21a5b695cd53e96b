/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the links between ranks: messages go back and forth between two ranks at a time, as tiles do. */
#include "base/clock.h"
#include "ranks/mpi.h"
#include "ranks/ranks.h"

#include <math.h>

#include <starpu_mpi.h>

enum { SMALL = 1, LARGE = 1 << 20, TRIALS = 3 }; /* bytes; the first trial may have to connect */

/* Returns the rank's partner in a round: in rounds 0 … ranks − 2, or … ranks − 1 of an odd number, all pairs
 * meet once, as in a tournament. -1: nobody. */
static int partner_of(int rank, int round, int ranks)
{
	const int even = ranks + ranks % 2, others = even - 1;
	int partner = (2 * round - rank + others) % others;
	if (rank == others)
		partner = round;
	else if (partner == rank)
		partner = others;
	return partner < ranks ? partner : -1;
}

static void pass(starpu_data_handle_t handle, int partner, bool sends)
{
	MPI_Status status;
	if (sends)
		starpu_mpi_send(handle, partner, 0, smalti_ranks_data());
	else
		starpu_mpi_recv(handle, partner, 0, smalti_ranks_data(), &status);
}

/* Returns half of the shortest round trip to the partner, in seconds. */
static double one_way(void *memory, size_t bytes, int partner)
{
	const bool first = smalti_ranks_own() < partner;
	double shortest = (double)INFINITY;
	starpu_data_handle_t handle;
	starpu_vector_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)memory, (uint32_t)bytes, 1);
	for (int i = 0; i < TRIALS; i++) {
		const double began = smalti_now();
		pass(handle, partner, first);
		pass(handle, partner, !first);
		shortest = fmin(shortest, (smalti_now() - began) / 2);
	}
	starpu_data_unregister(handle);
	return shortest;
}

/* Measures the link to a partner. On a busy machine the latency may be longer than all of a large message. */
static struct smalti_link_fact measure(void *memory, int partner)
{
	const double latency = one_way(memory, SMALL, partner);
	const double seconds = one_way(memory, LARGE, partner);
	return (struct smalti_link_fact){LARGE / fmax(seconds - latency, 0.1 * seconds), latency};
}

/* Copies the lower rank's measurement to the other direction. */
static void mirror(struct smalti_link_fact *links, int count)
{
	for (int from = 0; from < count; from++)
		for (int to = 0; to < from; to++)
			links[from * count + to] = links[to * count + from];
}

int smalti_ranks_links(struct smalti_link_fact *links, struct smalti_error *error)
{
	const int count = smalti_ranks_count(), own = smalti_ranks_own();
	struct smalti_link_fact row[SMALTI_MAX_RANKS] = {{0, 0}};
	SCOPED(free) void *memory = smalti_calloc(LARGE, 1, error);
	if (smalti_ranks_agree(memory ? 0 : -1, NULL, error) < 0)
		return -1;
	for (int round = 0; round < count - 1 + count % 2; round++) {
		const int partner = partner_of(own, round, count);
		if (partner >= 0)
			row[partner] = measure(memory, partner);
	}
	smalti_ranks_gather(row, count * (int64_t)sizeof(row[0]), links);
	mirror(links, count);
	return 0;
}
