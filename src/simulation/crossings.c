/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/crossings.h"
#include "base/bits.h"

#include <math.h>

enum { MEMORIES = SMALTI_MACHINE_GPUS + 1, ROUNDS = 100 };

/* The maker of a tile's value: nobody yet, a task that may run anywhere, or one of memory m: MEMORY + m. */
enum { NOBODY, SOMEBODY, MEMORY };

struct value {
	int maker;
	struct smalti_bits readers; /* memories of tasks that run only there */
	double bytes;
	double seconds; /* of CPUs, for its share of the tasks that read it and may run anywhere */
};

/* A value of main memory that crosses unless CPUs work for `seconds`. */
struct candidate {
	double bytes, seconds;
};

struct smalti_crossings {
	const struct smalti_simulated_machine *machine;
	struct value *values; /* by the number of the tile */
	int64_t value_room;
	struct candidate *candidates;
	int64_t candidate_count;
	double in[MEMORIES], out[MEMORIES];                           /* bytes */
	double waits[MEMORIES];                                       /* seconds */
	double host;                                                  /* bytes, of a single node */
	double gets[SMALTI_MACHINE_GPUS], sends[SMALTI_MACHINE_GPUS]; /* bytes of nodes */
};

struct smalti_crossings *smalti_crossings_new(const struct smalti_simulated_machine *machine,
					      struct smalti_error *error)
{
	struct smalti_crossings *crossings = smalti_calloc(1, sizeof(*crossings), error);
	if (crossings)
		crossings->machine = machine;
	return crossings;
}

void smalti_crossings_free(struct smalti_crossings *crossings)
{
	if (!crossings)
		return;
	free(crossings->values);
	free(crossings->candidates);
	free(crossings);
}

/* Tells whether GPUs of a node have links that do not go through the host. */
static bool has_own_links(const struct smalti_simulated_machine *machine)
{
	return machine->blocking || machine->nvlink.bandwidth > 0 || machine->nvswitch.bandwidth > 0;
}

static bool is_read_elsewhere(const struct value *value)
{
	struct smalti_bits readers = value->readers;
	const int maker = value->maker - MEMORY;
	readers.word[maker / 64] &= ~(UINT64_C(1) << maker % 64);
	return smalti_bits_any(&readers);
}

/* Counts a value between nodes. Each node can receive from main memory what is there, too. */
static void cross_network(struct smalti_crossings *c, const struct value *value)
{
	const int maker = value->maker - MEMORY;
	if (c->machine->nodes == 1 || maker == 0 || smalti_bits_has(&value->readers, 0))
		return;
	const int64_t home = smalti_machine_node(c->machine, maker - 1);
	const int per_node = (int)(smalti_machine_gpus(c->machine) / c->machine->nodes);
	bool leaves = false;
	for (int64_t node = 0; node < c->machine->nodes; node++) {
		bool comes = false;
		for (int gpu = 0; gpu < per_node && node != home; gpu++)
			comes = comes || smalti_bits_has(&value->readers, (int)node * per_node + gpu + 1);
		c->gets[node] += comes ? value->bytes : 0;
		leaves = leaves || comes;
	}
	c->sends[home] += leaves ? value->bytes : 0;
}

/* Counts a value that no later task reads. -1 without memory. */
static int retire(struct smalti_crossings *c, const struct value *value)
{
	if (value->maker < MEMORY)
		return 0;
	const int maker = value->maker - MEMORY;
	if (!is_read_elsewhere(value)) {
		if (maker != 0 || value->seconds == 0)
			return 0;
		if (smalti_grow(&c->candidates, c->candidate_count, sizeof(*c->candidates), NULL) < 0)
			return -1;
		c->candidates[c->candidate_count++] = (struct candidate){value->bytes, value->seconds};
		return 0;
	}
	c->out[maker] += value->bytes;
	int comes = 0;
	for (int memory = 0; memory <= smalti_machine_gpus(c->machine); memory++)
		if (memory != maker && smalti_bits_has(&value->readers, memory)) {
			c->in[memory] += value->bytes;
			comes++;
		}
	if (!has_own_links(c->machine))
		c->host += value->bytes * comes;
	else if (maker == 0 || smalti_bits_has(&value->readers, 0))
		c->host += value->bytes;
	cross_network(c, value);
	return 0;
}

static struct value *value_of(struct smalti_crossings *c, const struct smalti_crossing *use)
{
	if (smalti_grow_to(&c->values, &c->value_room, use->tile, sizeof(*c->values), NULL) < 0)
		return NULL;
	struct value *value = &c->values[use->tile];
	if (value->maker == NOBODY && use->at_home)
		*value = (struct value){.maker = MEMORY, .bytes = use->bytes};
	return value;
}

/* Returns the bytes of main memory's values that a task reads: the values share its time by bytes. */
static double bytes_at_home(struct smalti_crossings *c, const struct smalti_crossing *uses, int count)
{
	double bytes = 0;
	for (int i = 0; i < count; i++) {
		const struct value *value = value_of(c, &uses[i]);
		if (value && uses[i].reads && value->maker == MEMORY)
			bytes += value->bytes;
	}
	return bytes;
}

int smalti_crossings_add(struct smalti_crossings *c, const struct smalti_crossing *uses, int count,
			 int memory, double seconds, double wait)
{
	const bool anywhere = memory == SMALTI_CROSSES_ANYWHERE;
	const double at_home = anywhere ? bytes_at_home(c, uses, count) : 0;
	if (!anywhere)
		c->waits[memory] += wait;
	for (int i = 0; i < count; i++) {
		struct value *value = value_of(c, &uses[i]);
		if (!value)
			return -1;
		if (uses[i].reads && !anywhere)
			smalti_bits_add(&value->readers, memory);
		if (uses[i].reads && value->maker == MEMORY && at_home > 0)
			value->seconds += seconds * value->bytes / at_home;
		if (!uses[i].writes)
			continue;
		if (retire(c, value) < 0)
			return -1;
		*value =
		    (struct value){.maker = anywhere ? SOMEBODY : MEMORY + memory, .bytes = uses[i].bytes};
	}
	return 0;
}

static double seconds_over(struct smalti_machine_link link, double bytes)
{
	return link.latency + bytes / link.bandwidth;
}

double smalti_crossings_delay(const struct smalti_crossings *c, const struct smalti_crossing *use, int memory)
{
	const bool known = use->tile < c->value_room && c->values[use->tile].maker != NOBODY;
	const int maker = known ? c->values[use->tile].maker : use->at_home ? MEMORY : NOBODY;
	const int from = maker - MEMORY;
	if (!use->reads || memory == SMALTI_CROSSES_ANYWHERE || maker < MEMORY || from == memory)
		return 0;
	const double host = seconds_over(c->machine->pcie, use->bytes);
	if (from == 0 || memory == 0)
		return host;
	return c->machine->blocking
		   ? 0
		   : fmin(2 * host,
			  seconds_over(smalti_machine_between(c->machine, from - 1, memory - 1), use->bytes));
}

/* Sorts first what is the cheapest to keep at home. */
static int by_worth(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const double first = x->bytes * y->seconds, second = y->bytes * x->seconds;
	return (first < second) - (first > second);
}

/* Returns the candidates' bytes that cross at least, if CPUs work `seconds` in sum. */
static double crossing(const struct smalti_crossings *c, double seconds)
{
	double bytes = 0;
	for (int64_t i = 0; i < c->candidate_count; i++) {
		const struct candidate *candidate = &c->candidates[i];
		const double spent = fmin(seconds, candidate->seconds);
		seconds -= spent;
		bytes += candidate->bytes * (1 - spent / candidate->seconds);
	}
	return bytes;
}

/* Returns the least time in which these bytes and those of the candidates cross. */
static double leave_home(const struct smalti_crossings *c, double bytes, double rate, int64_t cpus)
{
	double min = 0, max = (bytes + crossing(c, 0)) / rate;
	for (int round = 0; round < ROUNDS; round++) {
		const double middle = (min + max) / 2;
		if ((bytes + crossing(c, middle * (double)cpus)) / rate > middle)
			min = middle;
		else
			max = middle;
	}
	return min;
}

/* Returns the bytes a second that a GPU can receive, and send. */
static double rate_of(const struct smalti_simulated_machine *m, int64_t peers)
{
	return m->pcie.bandwidth + m->nvswitch.bandwidth + m->nvlink.bandwidth * (double)peers;
}

static double over_network(const struct smalti_crossings *c)
{
	double bytes = 0;
	for (int64_t node = 0; node < c->machine->nodes; node++)
		bytes = fmax(bytes, fmax(c->gets[node], c->sends[node]));
	return c->machine->nodes > 1 && !c->machine->blocking ? bytes / c->machine->network.bandwidth : 0;
}

double smalti_crossings_bound(struct smalti_crossings *c, int64_t cpus, int64_t gpus)
{
	const struct smalti_simulated_machine *m = c->machine;
	if (gpus == 0)
		return 0;
	for (int64_t tile = 0; tile < c->value_room; tile++)
		if (retire(c, &c->values[tile]) == 0)
			c->values[tile].maker = NOBODY;
	if (c->candidate_count > 0) /* else there is no list */
		qsort(c->candidates, (size_t)c->candidate_count, sizeof(*c->candidates), by_worth);
	const double main_rate = fmin((double)gpus * m->pcie.bandwidth, (double)m->nodes * m->host),
		     rate = rate_of(m, smalti_min(gpus, smalti_machine_gpus(m) / m->nodes) - 1);
	double bound = fmax(leave_home(c, c->out[0], main_rate, cpus), c->in[0] / main_rate);
	if (m->nodes == 1)
		bound = fmax(bound, leave_home(c, c->host, m->host, cpus));
	for (int64_t memory = 1; memory <= gpus; memory++) {
		if (!m->blocking)
			bound = fmax(bound, fmax(c->in[memory], c->out[memory]) / rate);
		bound = fmax(bound, c->waits[memory]);
	}
	return fmax(bound, over_network(c));
}
