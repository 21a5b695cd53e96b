/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/strategy/choose.h"

#include <math.h>

bool smalti_is_auto(const char *text)
{
	return text && strcmp(text, "auto") == 0;
}

/* A search under way. */
struct search {
	const struct smalti_denoising *denoising;
	const struct smalti_place_facts *facts;
	double *shares, *best_shares; /* of the strategy that is tried, and of the best one */
	struct smalti_cost best, min; /* the fastest that fits; the one that lacks */
	char name[SMALTI_STRATEGY_NAME], min_name[SMALTI_STRATEGY_NAME];
};

/* Returns the place after `than`, by falling rates, then by numbers; -1: none. */
static int next_slower(const struct smalti_place_facts *facts, const double *shares, int than)
{
	int next = -1;
	for (int i = 0; i < facts->count; i++) {
		const double rate = facts->place[i].rate;
		const double limit = than < 0 ? (double)INFINITY : facts->place[than].rate;
		const bool behind = rate < limit || (rate == limit && i > than);
		if (shares[i] > 0 && behind && (next < 0 || rate > facts->place[next].rate))
			next = i;
	}
	return next;
}

void smalti_shares_by_rate(const struct smalti_place_facts *facts, double *shares)
{
	static const double alike = 0.9, hundred = 100;
	for (int i = 0; i < facts->count; i++)
		shares[i] = facts->place[i].rate > 0 && (i > 0 || facts->count == 1 || facts->ranks) ? 1 : 0;
	const int fastest = next_slower(facts, shares, -1);
	for (int i = fastest, before = -1; i >= 0; before = i, i = next_slower(facts, shares, i)) {
		const double rate = facts->place[i].rate;
		const double of_fastest = rate / facts->place[fastest].rate; /* exactly 1 of itself */
		const double share = fmax(floor(hundred * of_fastest), 1) / hundred;
		const bool same = before >= 0 && rate >= alike * facts->place[before].rate;
		shares[i] = same ? shares[before] : share;
	}
}

static void add_axis(char *name, const char *axis, int parts)
{
	const size_t length = strlen(name);
	if (parts > 1)
		snprintf(name + length, SMALTI_STRATEGY_NAME - length, "%s%s%d", length ? "." : "", axis,
			 parts);
}

static void name_strategy(char name[SMALTI_STRATEGY_NAME], int branches, const char *shard, int shards,
			  const char *rank, int ranks)
{
	char axes[SMALTI_STRATEGY_NAME] = "";
	add_axis(axes, "cfg", branches);
	add_axis(axes, shard, shards);
	add_axis(axes, rank, ranks);
	snprintf(name, SMALTI_STRATEGY_NAME, "%s%s", strchr(axes, '.') ? "hybrid:" : "",
		 *axes ? axes : "patch1");
}

static int try_name(struct search *s, const char *name, struct smalti_error *error)
{
	struct smalti_strategy strategy;
	struct smalti_cost cost;
	if (smalti_strategy_read(&strategy, name, s->shares, s->facts->count, error) < 0)
		return -1;
	const int status = smalti_strategy_cost(s->denoising, &strategy, s->facts, &cost, error);
	smalti_strategy_free(&strategy);
	if (status == 0 && cost.missing == 0 && cost.seconds < s->best.seconds) {
		s->best = cost;
		snprintf(s->name, sizeof(s->name), "%s", name);
		memcpy(s->best_shares, s->shares, (size_t)s->facts->count * sizeof(*s->shares));
	}
	if (status == 0 && cost.missing < s->min.missing) {
		s->min = cost;
		snprintf(s->min_name, sizeof(s->min_name), "%s", name);
	}
	return status;
}

/* Tries both kinds of shards and of ranks, if there are several of them. */
static int try_parts(struct search *s, int branches, int shards, int ranks, struct smalti_error *error)
{
	static const char *const shard[] = {"ulysses", "tensor"}, *const rank[] = {"patch", "ring"};
	char name[SMALTI_STRATEGY_NAME];
	for (size_t i = 0; i < (shards > 1 ? COUNT_OF(shard) : 1); i++)
		for (size_t j = 0; j < (ranks > 1 ? COUNT_OF(rank) : 1); j++) {
			name_strategy(name, branches, shard[i], shards, rank[j], ranks);
			if (try_name(s, name, error) < 0)
				return -1;
		}
	return 0;
}

/* Tries all ways to make so many parts of the axes. */
static int try_count(struct search *s, int count, struct smalti_error *error)
{
	const int max = s->denoising->branches < count ? s->denoising->branches : count;
	for (int branches = 1; branches <= max; branches++)
		for (int shards = 1; shards <= count && shards <= SMALTI_MAX_SHARDS; shards++)
			if (count % (branches * shards) == 0 &&
			    try_parts(s, branches, shards, count / (branches * shards), error) < 0)
				return -1;
	return 0;
}

/* Tries the fastest 1, 2, …, `count` places with a share; with `fixed` only all. */
static int try_counts(struct search *s, const double *shares, int count, bool fixed,
		      struct smalti_error *error)
{
	int place = -1;
	for (int i = 1; i <= count; i++) {
		place = next_slower(s->facts, shares, place);
		s->shares[place] = shares[place];
		if ((i == count || !fixed) && try_count(s, i, error) < 0)
			return -1;
	}
	return 0;
}

static int refuse(const struct search *s, struct smalti_error *error)
{
	static const double mega = 1 << 20;
	const char *places = s->facts->ranks ? "ranks" : "devices";
	return smalti_fail(error, SMALTI_ENOMEM,
			   "strategy auto: expected an exact strategy that the %s have memory for, found %s, "
			   "which lacks %.0f MiB, as the best; take more %s or raise %s, or "
			   "name a strategy, then weights that do not fit are loaded again and again",
			   places, s->min_name, s->min.missing / mega, places,
			   s->facts->ranks ? "--memory-limit" : "--gpu-memory-limit");
}

int smalti_strategy_choose(const struct smalti_denoising *denoising, const struct smalti_place_facts *facts,
			   bool fixed, double *shares, char name[SMALTI_STRATEGY_NAME],
			   struct smalti_error *error)
{
	int count = 0;
	for (int i = 0; i < facts->count; i++)
		count += shares[i] > 0;
	name_strategy(name, 1, "", 1, "", 1);
	if (count < 2)
		return 0;
	SCOPED(free) double *tried = smalti_calloc(2 * (int64_t)facts->count, sizeof(*tried), error);
	struct search s = {.denoising = denoising,
			   .facts = facts,
			   .shares = tried,
			   .best_shares = tried + facts->count,
			   .best = {.seconds = (double)INFINITY},
			   .min = {.missing = (double)INFINITY}};
	if (!tried || try_counts(&s, shares, count, fixed, error) < 0)
		return -1;
	if (!*s.name)
		return refuse(&s, error);
	memcpy(name, s.name, SMALTI_STRATEGY_NAME);
	memcpy(shares, s.best_shares, (size_t)facts->count * sizeof(*shares));
	return 0;
}
