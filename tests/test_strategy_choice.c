/* SPDX-License-Identifier: Apache-2.0
 *
 * Which strategy `auto` is on machines that are made up: what one expects of each, and for random ones the
 * best of all that there are.
 */
#include "graphs/pixart/weights.h"
#include "graphs/strategy/choose.h"
#include "harness.h"
#include "judge.h"

#include <math.h>

enum { MAX_PLACES = 8, RANDOM_MACHINES = 60 };
static const double giga = 1e9, tera = 1e12;

/* Place 0 are CPUs, which take no part, or a rank as the others. */
struct machine {
	int places;
	double rate[MAX_PLACES], memory[MAX_PLACES]; /* Tflop/s, GB */
	double bandwidth, latency;                   /* GB/s, µs */
	double slow; /* bandwidth between the first half of the devices and the second; 0: the same */
	bool ranks;
};

static const struct smalti_denoiser_functions functions = {.sketch = smalti_dit_sketch};

/* PixArt's XL/2. */
static const struct smalti_dit large = {
    .denoiser = {.functions = &functions, .in_channels = 4, .out_channels = 8, .patch_size = 2, .layers = 28},
    .config = {.in_channels = 4,
	       .out_channels = 8,
	       .patch_size = 2,
	       .sample_size = 128,
	       .layers = 28,
	       .heads = 16,
	       .head_dim = 72,
	       .width = 1152,
	       .caption_channels = 4096,
	       .interpolation_scale = 2},
    .compute = SMALTI_F16};

static struct smalti_denoising denoising_of(int64_t side, bool guided)
{
	const int64_t columns = side / 16;
	return (struct smalti_denoising){.denoiser = &large.denoiser,
					 .tokens = columns * columns,
					 .columns = columns,
					 .band_tokens = 256,
					 .prompt_tokens = {guided ? 1 : 40, 40},
					 .branches = guided ? 2 : 1};
}

struct facts {
	struct smalti_place_facts facts;
	struct smalti_place_fact place[MAX_PLACES];
	struct smalti_link_fact link[MAX_PLACES * MAX_PLACES];
};

static const struct smalti_place_facts *facts_of(const struct machine *m, struct facts *f)
{
	const int half = (m->places + 1) / 2;
	*f = (struct facts){.facts = {m->places, m->ranks, true, f->place, f->link}};
	for (int i = 0; i < m->places; i++) {
		f->place[i] = (struct smalti_place_fact){m->rate[i] * tera, (int64_t)(m->memory[i] * giga)};
		for (int j = 0; j < m->places; j++) {
			const bool far = m->slow > 0 && (i < half) != (j < half);
			f->link[i * m->places + j] = (struct smalti_link_fact){
			    (far ? m->slow : m->bandwidth) * giga, m->latency * 1e-6};
		}
	}
	return &f->facts;
}

/* With the shares of the devices, or of all ranks. */
static void write_choice(const char *name, const double *shares, const struct smalti_place_facts *facts,
			 char text[160])
{
	const int first = facts->ranks ? 0 : 1;
	snprintf(text, 160, "%s", name);
	for (int i = first; i < facts->count; i++) {
		const size_t length = strlen(text);
		snprintf(text + length, 160 - length, "%s%g", i > first ? ":" : " ", shares[i]);
	}
}

static const struct {
	const char *what;
	struct machine machine;
	int64_t side;
	bool guided;
	const char *expected; /* as above; NULL: nothing fits */
} cases[] = {
    {"one device", {2, {1, 50}, {64, 40}, 20, 5, 0, false}, 1024, true, "patch1 1"},
    {"one device, too small for it", {2, {1, 50}, {64, 0.5}, 20, 5, 0, false}, 1024, true, "patch1 1"},
    {"two, by a network", {3, {1, 50, 50}, {64, 40, 40}, 1, 30, 0, false}, 1024, true, "cfg2 1:1"},
    {"the same without guidance, small",
     {3, {1, 50, 50}, {64, 40, 40}, 0.1, 30, 0, false},
     256,
     false,
     "patch1 1:0"},
    {"the same without guidance, large",
     {3, {1, 50, 50}, {64, 40, 40}, 2, 30, 0, false},
     4096,
     false,
     "ring2 1:1"},
    {"two, well linked", {3, {1, 50, 50}, {64, 40, 40}, 200, 5, 0, false}, 4096, false, "patch2 1:1"},
    {"four, well linked",
     {5, {1, 50, 50, 50, 50}, {64, 40, 40, 40, 40}, 200, 5, 0, false},
     4096,
     false,
     "patch4 1:1:1:1"},
    {"four, not so well linked",
     {5, {1, 50, 50, 50, 50}, {64, 40, 40, 40, 40}, 10, 5, 0, false},
     1024,
     false,
     "hybrid:ulysses2.ring2 1:1:1:1"},
    {"two pairs",
     {5, {1, 50, 50, 50, 50}, {64, 40, 40, 40, 40}, 100, 5, 0.5, false},
     2048,
     true,
     "hybrid:cfg2.patch2 1:1:1:1"},
    {"one of a third", {3, {1, 60, 20}, {64, 40, 40}, 50, 5, 0, false}, 2048, true, "patch2 1:0.33"},
    {"measured a little apart", {3, {1, 50, 48}, {64, 40, 40}, 1, 30, 0, false}, 1024, true, "cfg2 1:1"},
    {"one that is slow and far", {3, {1, 60, 0.2}, {64, 40, 40}, 0.1, 30, 0, false}, 512, true, "patch1 1:0"},
    {"too small for the weights",
     {3, {1, 50, 50}, {64, 0.9, 0.9}, 50, 5, 0, false},
     512,
     true,
     "tensor2 1:1"},
    {"far too small", {5, {1, 50, 50, 50, 50}, {64, 0.1, 0.1, 0.1, 0.1}, 50, 5, 0, false}, 512, true, NULL},
    {"two ranks", {2, {1, 1}, {64, 64}, 0.05, 50, 0, true}, 1024, true, "cfg2 1:1"},
    {"two ranks, the first one slow", {2, {0.2, 1}, {64, 64}, 10, 50, 0, true}, 1024, true, "patch2 0.2:1"},
    {"a rank that is slow and far", {2, {1, 0.01}, {64, 64}, 0.001, 50, 0, true}, 512, true, "patch1 1:0"},
    {"ranks too small", {2, {1, 1}, {0.1, 0.1}, 10, 50, 0, true}, 512, true, NULL},
};

static void made_up(void)
{
	for (int i = 0; i < COUNT(cases); i++) {
		struct facts facts;
		struct smalti_error error = SMALTI_NO_ERROR;
		double shares[MAX_PLACES];
		char name[SMALTI_STRATEGY_NAME], found[160], what[320];
		const struct smalti_denoising d = denoising_of(cases[i].side, cases[i].guided);
		const struct smalti_place_facts *f = facts_of(&cases[i].machine, &facts);
		smalti_shares_by_rate(f, shares);
		const int status = smalti_strategy_choose(&d, f, false, shares, name, &error);
		if (!cases[i].expected) {
			FAILS(status, &error, SMALTI_ENOMEM, cases[i].what, "lacks", "MiB",
			      f->ranks ? "more ranks or raise --memory-limit"
				       : "more devices or raise --gpu-memory-limit");
			continue;
		}
		SUCCEEDS(status, &error, cases[i].what);
		write_choice(name, shares, f, found);
		snprintf(what, sizeof(what), "%s: %s, expected %s", cases[i].what, found, cases[i].expected);
		CHECK(strcmp(found, cases[i].expected) == 0, what);
	}
}

static double cost_of(const struct smalti_denoising *d, const struct smalti_place_facts *facts,
		      const char *name, const double *shares)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_strategy strategy;
	struct smalti_cost cost;
	SUCCEEDS(smalti_strategy_read(&strategy, name, shares, facts->count, &error), &error, name);
	SUCCEEDS(smalti_strategy_cost(d, &strategy, facts, &cost, &error), &error, name);
	CHECK(smalti_strategy_is_exact(&strategy), name);
	smalti_strategy_free(&strategy);
	return cost.missing > 0 ? (double)INFINITY : cost.seconds;
}

/* Of all that the places with a share can do, in as many parts as they are. */
static double best_of(const struct smalti_denoising *d, const struct smalti_place_facts *facts,
		      const double *shares)
{
	static const char *const shard[] = {"ulysses", "tensor"}, *const rank[] = {"patch", "ring"};
	int count = 0;
	double best = (double)INFINITY;
	for (int i = 0; i < facts->count; i++)
		count += shares[i] > 0;
	for (int branches = 1; branches <= d->branches; branches++)
		for (int shards = 1; shards <= count; shards++)
			for (int kind = 0; kind < 4 && count % (branches * shards) == 0; kind++) {
				char name[96];
				snprintf(name, sizeof(name), "hybrid:cfg%d.%s%d.%s%d", branches,
					 shard[kind % 2], shards, rank[kind / 2], count / branches / shards);
				best = fmin(best, cost_of(d, facts, name, shares));
			}
	return best;
}

/* With the fastest places, however many. */
static double best_of_all(const struct smalti_denoising *d, const struct smalti_place_facts *facts,
			  const double *all)
{
	double best = (double)INFINITY;
	for (int slowest = 1; slowest < facts->count; slowest++) {
		double shares[MAX_PLACES] = {0};
		for (int i = 1; i < facts->count; i++) {
			const double rate = facts->place[i].rate, min = facts->place[slowest].rate;
			shares[i] = rate > min || (rate == min && i <= slowest) ? all[i] : 0;
		}
		best = fmin(best, best_of(d, facts, shares));
	}
	return best;
}

static struct machine random_machine(uint64_t *state)
{
	static const int64_t rates[] = {1, 3, 10, 10, 30}, memories[] = {300, 900, 2000, 8000},
			     bandwidths[] = {100, 1000, 10000, 100000}, counts[] = {3, 4, 5, 7, 8};
	struct machine m = {.places = (int)judge_draw(state, counts, COUNT(counts)),
			    .bandwidth = 1e-3 * (double)judge_draw(state, bandwidths, COUNT(bandwidths)),
			    .slow = 1e-3 * (double)judge_draw(state, bandwidths, COUNT(bandwidths)),
			    .latency = 10};
	for (int i = 0; i < m.places; i++) {
		m.rate[i] = (double)judge_draw(state, rates, COUNT(rates));
		m.memory[i] = 1e-3 * (double)judge_draw(state, memories, COUNT(memories));
	}
	return m;
}

static void best(void)
{
	static const int64_t sides[] = {256, 1024, 2048};
	uint64_t state = 5;
	int refused = 0;
	for (int i = 0; i < RANDOM_MACHINES; i++) {
		struct facts facts;
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct machine machine = random_machine(&state);
		const struct smalti_place_facts *f = facts_of(&machine, &facts);
		const struct smalti_denoising d =
		    denoising_of(judge_draw(&state, sides, COUNT(sides)), i % 3 > 0);
		double shares[MAX_PLACES];
		char name[SMALTI_STRATEGY_NAME], found[160], what[256];
		smalti_shares_by_rate(f, shares);
		const double min = best_of_all(&d, f, shares);
		if (smalti_strategy_choose(&d, f, false, shares, name, &error) < 0) {
			CHECK(isinf(min) && error.code == SMALTI_ENOMEM, error.message);
			refused++;
			continue;
		}
		write_choice(name, shares, f, found);
		const double cost = cost_of(&d, f, name, shares);
		snprintf(what, sizeof(what), "machine %d: %s takes %g s, the best %g s", i, found, cost, min);
		CHECK(fabs(cost - min) <= 1e-9 * min, what);
	}
	CHECK(refused > 0 && refused < RANDOM_MACHINES / 2, "some machines are too small");
}

/* The fastest place has 1, and others of the same rate too, whatever the digits of the rate. */
static void fastest(void)
{
	for (int i = 1; i <= 1000; i++) {
		struct facts facts;
		const double rate = 1 / (double)i;
		const struct machine machines[] = {{.places = 1, .rate = {rate}},
						   {.places = 4, .rate = {1, rate, rate, rate / 2}}};
		double shares[MAX_PLACES];
		smalti_shares_by_rate(facts_of(&machines[0], &facts), shares);
		CHECK(shares[0] == 1, "the only place");
		smalti_shares_by_rate(facts_of(&machines[1], &facts), shares);
		CHECK(shares[0] == 0 && shares[1] == 1 && shares[2] == 1 && shares[3] == 0.5,
		      "two and a half");
	}
}

/* Shares that are given are all used. */
static void given(void)
{
	struct facts facts;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct machine machine = {3, {1, 60, 0.2}, {64, 40, 40}, 0.1, 30, 0, false};
	const struct smalti_denoising d = denoising_of(512, true);
	double shares[MAX_PLACES] = {0, 2, 1};
	char name[SMALTI_STRATEGY_NAME], found[160];
	const struct smalti_place_facts *f = facts_of(&machine, &facts);
	SUCCEEDS(smalti_strategy_choose(&d, f, true, shares, name, &error), &error, "given");
	write_choice(name, shares, f, found);
	CHECK(strstr(found, "2 2:1"), found);
}

/* Of all places together, a pass has the arithmetic of one place, and heads and columns no more weights. */
static void loads_add_up(void)
{
	static const struct {
		const char *name;
		double flops, weights; /* to those of one place */
	} parts[] = {{"patch4", 1, 4},
		     {"ring3", 1, 3},
		     {"ulysses4", 1, 4},
		     {"tensor4", 1, 1},
		     {"pipeline4", 1, 1},
		     {"cfg2", 1, 1.83}, /* the empty prompt needs no queries of cross-attention */
		     {"hybrid:tensor2.ring2", 1, 2}};
	const struct smalti_denoising d = denoising_of(1024, true);
	struct smalti_error error = SMALTI_NO_ERROR;
	double one = 0, held = 0;
	for (int i = -1; i < COUNT(parts); i++) {
		struct smalti_strategy strategy;
		double flops = 0, weights = 0;
		char what[160];
		const char *name = i < 0 ? "patch1" : parts[i].name;
		SUCCEEDS(smalti_strategy_read(&strategy, name, NULL, 5, &error), &error, name);
		struct smalti_load loads[5];
		SUCCEEDS(smalti_denoising_loads(&d, &strategy, true, 5, loads, &error), &error, name);
		for (int place = 1; place < 5; place++) {
			flops += loads[place].flops;
			weights += loads[place].weights;
		}
		smalti_strategy_free(&strategy);
		one = i < 0 ? flops : one;
		held = i < 0 ? weights : held;
		snprintf(what, sizeof(what), "%s: %.3f of the operations, %.3f of the weights", name,
			 flops / one, weights / held);
		CHECK(i < 0 || fabs(flops / one / parts[i].flops - 1) < 0.02, what);
		CHECK(i < 0 || fabs(weights / held / parts[i].weights - 1) < 0.04, what);
	}
}

static const struct test tests[] = {
    {"made up", made_up},    {"the best of random ones", best}, {"the fastest place", fastest},
    {"given shares", given}, {"loads add up", loads_add_up},
};

TEST_MAIN("strategy choice", tests)
