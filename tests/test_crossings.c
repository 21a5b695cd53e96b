/* SPDX-License-Identifier: Apache-2.0 */
/* simulation/crossings.h: what has to cross which link of a machine, and what that takes at least. */
#include "simulation/crossings.h"
#include "tests/harness.h"

#include <math.h>

enum { MAIN, FIRST, SECOND, THIRD, ANYWHERE = SMALTI_CROSSES_ANYWHERE };

/* Links of 10, through a host of 15 bytes a second. */
static struct smalti_simulated_machine machine_of(int64_t gpus, int64_t nodes)
{
	return (struct smalti_simulated_machine){.gpu = {{.count = gpus}},
						 .gpu_kinds = 1,
						 .pcie = {10, 0.25},
						 .host = 15,
						 .network = {2, 1},
						 .nodes = nodes};
}

struct step {
	int64_t tile;
	char how; /* 'r'ead, 'w'rite, 'u'pdate; 'h': read, and in main memory at first */
	int memory;
	double bytes, seconds;
};

static double bound(const struct smalti_simulated_machine *machine, const struct step *steps, int count,
		    int64_t cpus, int64_t gpus)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_crossings *crossings = smalti_crossings_new(machine, &error);
	if (!crossings)
		return (double)NAN;
	for (int i = 0; i < count; i++) {
		const struct step *s = &steps[i];
		const struct smalti_crossing use = {.tile = s->tile,
						    .bytes = s->bytes,
						    .reads = s->how != 'w',
						    .writes = s->how == 'w' || s->how == 'u',
						    .at_home = s->how == 'h'};
		smalti_crossings_add(crossings, &use, 1, s->memory, s->seconds, 0);
	}
	const double seconds = smalti_crossings_bound(crossings, cpus, gpus);
	smalti_crossings_free(crossings);
	return seconds;
}

#define BOUND(machine, cpus, gpus, ...)                                                                      \
	bound(&(machine), (const struct step[]){__VA_ARGS__},                                                \
	      sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step), cpus, gpus)

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6;
}

static void known_places(void)
{
	const struct smalti_simulated_machine pair = machine_of(2, 1);
	struct smalti_simulated_machine fast = pair;
	fast.nvswitch.bandwidth = 90;
	CHECK(BOUND(pair, 1, 2, {1, 'w', FIRST, 30, 0}, {1, 'r', FIRST, 30, 0}) == 0, "nothing moves");
	CHECK(
	    near(BOUND(pair, 1, 2, {1, 'w', FIRST, 30, 0}, {1, 'r', SECOND, 30, 0}, {1, 'r', SECOND, 30, 0}),
		 3),
	    "30 bytes, once, from GPU to GPU");
	CHECK(near(BOUND(pair, 1, 2, {1, 'w', FIRST, 30, 0}, {1, 'r', SECOND, 30, 0}, {1, 'w', FIRST, 30, 0},
			 {1, 'r', SECOND, 30, 0}),
		   6),
	      "each value of a tile");
	CHECK(near(BOUND(pair, 1, 2, {1, 'h', FIRST, 30, 0}, {1, 'r', SECOND, 30, 0}), 4),
	      "60 bytes through the host");
	CHECK(near(BOUND(fast, 1, 2, {1, 'w', FIRST, 30, 0}, {1, 'r', SECOND, 30, 0}), 0.3),
	      "over both links");
	CHECK(near(BOUND(fast, 1, 2, {1, 'h', FIRST, 30, 0}, {1, 'r', SECOND, 30, 0}), 2),
	      "30 bytes out of main memory; the second may have them from the first");
	CHECK(BOUND(pair, 1, 2, {1, 'w', ANYWHERE, 30, 0}, {1, 'r', SECOND, 30, 0}) == 0,
	      "made who knows where");
}

static void unknown_places(void)
{
	const struct smalti_simulated_machine single = machine_of(1, 1);
	CHECK(near(BOUND(single, 0, 1, {1, 'h', ANYWHERE, 30, 5}), 3), "no CPU that could do it");
	CHECK(near(BOUND(single, 1, 1, {1, 'h', ANYWHERE, 30, 1}, {2, 'h', ANYWHERE, 30, 1e9}), 3),
	      "a CPU does the first");
	CHECK(near(BOUND(single, 1, 1, {1, 'h', ANYWHERE, 30, 3}, {1, 'r', ANYWHERE, 30, 3}), 2),
	      "2 of 6 seconds on a CPU, meanwhile two thirds of the bytes cross");
	CHECK(BOUND(single, 1, 0, {1, 'h', ANYWHERE, 30, 5}) == 0, "no GPU in use");
}

static void nodes(void)
{
	const struct smalti_simulated_machine cluster = machine_of(4, 2);
	CHECK(near(BOUND(cluster, 1, 4, {1, 'w', FIRST, 30, 0}, {1, 'r', SECOND, 30, 0}), 3),
	      "within a node");
	CHECK(near(BOUND(cluster, 1, 4, {1, 'w', FIRST, 30, 0}, {1, 'r', THIRD, 30, 0},
			 {1, 'r', THIRD + 1, 30, 0}),
		   15),
	      "once over the network, to both");
	CHECK(
	    near(BOUND(cluster, 1, 4, {1, 'w', FIRST, 30, 0}, {1, 'r', MAIN, 30, 0}, {1, 'r', THIRD, 30, 0}),
		 3),
	    "or out of main memory");
}

static void delays(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_simulated_machine cluster = machine_of(4, 2);
	struct smalti_crossings *c = smalti_crossings_new(&cluster, &error);
	const struct smalti_crossing write = {.tile = 1, .bytes = 30, .writes = true},
				     read = {.tile = 1, .bytes = 30, .reads = true},
				     home = {.tile = 2, .bytes = 30, .reads = true, .at_home = true};
	SUCCEEDS(c ? smalti_crossings_add(c, &write, 1, FIRST, 0, 0) : -1, &error, "a task");
	if (!c)
		return;
	CHECK(smalti_crossings_delay(c, &read, FIRST) == 0, "it is there");
	CHECK(near(smalti_crossings_delay(c, &read, SECOND), 3.5), "two links, one after the other at once");
	CHECK(near(smalti_crossings_delay(c, &read, THIRD), 6.5), "through main memory");
	CHECK(near(smalti_crossings_delay(c, &home, THIRD), 3.25), "from main memory");
	CHECK(smalti_crossings_delay(c, &read, ANYWHERE) == 0, "who knows");
	smalti_crossings_free(c);
}

static const struct test tests[] = {
    {"known places", known_places},
    {"unknown places", unknown_places},
    {"nodes", nodes},
    {"delays", delays},
};

TEST_MAIN("crossings", tests)
