/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "graphs/strategy/strategy.h"

enum { MAX_PARTS = 1024, ALL = 0 };

static const char prefix[] = "hybrid:";

static const struct axis_name {
	const char *name;
	enum smalti_axis axis;
	enum smalti_exchange exchange;
	bool tensor, replicas;
} names[] = {
    {"cfg", SMALTI_AXIS_BRANCH, SMALTI_EXCHANGE_GATHER, false, false},
    {"data", SMALTI_AXIS_BRANCH, SMALTI_EXCHANGE_GATHER, false, true},
    {"pipeline", SMALTI_AXIS_STAGE, SMALTI_EXCHANGE_GATHER, false, false},
    {"pipe", SMALTI_AXIS_STAGE, SMALTI_EXCHANGE_GATHER, false, false},
    {"ulysses", SMALTI_AXIS_SHARD, SMALTI_EXCHANGE_GATHER, false, false},
    {"tensor", SMALTI_AXIS_SHARD, SMALTI_EXCHANGE_GATHER, true, false},
    {"patch", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_GATHER, false, false},
    {"ring", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_RING, false, false},
    {"displaced", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_DISPLACED, false, false},
    {"masked", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_MASKED, false, false},
    {"naive", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_NAIVE, false, false},
    {"naive-columns", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_NAIVE_COLUMNS, false, false},
    {"naive-alternating", SMALTI_AXIS_RANK, SMALTI_EXCHANGE_NAIVE_ALTERNATING, false, false},
};

static int fail(const char *text, struct smalti_error *error)
{
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "strategy: expected NAME[N] with patch, ring, ulysses, tensor, cfg, pipeline, displaced, masked, "
	    "naive, naive-columns or naive-alternating (to train: data, patch, ring or tensor), or "
	    "hybrid:NAME[N].NAME[N]... with each axis once, found '%s'",
	    text);
}

/* Reads one NAME[N] of `length` characters. */
static int read_axis(struct smalti_strategy *strategy, const char *text, size_t length, bool *given)
{
	char name[32];
	size_t letters = 0;
	long parts = ALL;
	while (letters < length && (text[letters] == '-' || (text[letters] >= 'a' && text[letters] <= 'z')))
		letters++;
	if (length >= sizeof(name))
		return -1;
	memcpy(name, text, length);
	name[length] = '\0';
	if (letters < length) {
		char *end;
		parts = name[letters] >= '1' && name[letters] <= '9' ? strtol(name + letters, &end, 10) : -1;
		if (parts < 1 || parts > MAX_PARTS || *end)
			return -1;
	}
	name[letters] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0) {
			if (given[names[i].axis])
				return -1;
			given[names[i].axis] = true;
			strategy->parts[names[i].axis] = (int)parts;
			strategy->tensor |= names[i].tensor;
			strategy->replicas |= names[i].replicas;
			if (names[i].axis == SMALTI_AXIS_RANK)
				strategy->exchange = names[i].exchange;
			return 0;
		}
	return -1;
}

static int read_axes(struct smalti_strategy *strategy, const char *text, struct smalti_error *error)
{
	bool given[SMALTI_AXES] = {false};
	const bool hybrid = strncmp(text, prefix, strlen(prefix)) == 0;
	const char *at = hybrid ? text + strlen(prefix) : text;
	for (int axis = 0; axis < SMALTI_AXES; axis++)
		strategy->parts[axis] = 1;
	for (;;) {
		const size_t length = hybrid ? strcspn(at, ".") : strlen(at);
		if (read_axis(strategy, at, length, given) < 0)
			return fail(text, error);
		at += length;
		if (!*at)
			return 0;
		at++;
	}
}

/* Takes the places with a share; without shares the devices, or the CPUs if there is no device. */
static int take_places(struct smalti_strategy *strategy, const double *shares, int places,
		       struct smalti_error *error)
{
	strategy->place = smalti_calloc(places, sizeof(*strategy->place), error);
	strategy->share = smalti_calloc(places, sizeof(*strategy->share), error);
	if (!strategy->place || !strategy->share)
		return -1;
	for (int place = 0; place < places; place++) {
		const double share = shares ? shares[place] : place > 0 || places == 1 ? 1 : 0;
		if (share > 0) {
			strategy->place[strategy->count] = place;
			strategy->share[strategy->count++] = share;
		}
	}
	return 0;
}

/* Gives an axis without a number all places, and checks the numbers. */
static int count_parts(struct smalti_strategy *strategy, const char *text, struct smalti_error *error)
{
	int64_t parts = 1;
	for (int axis = 0; axis < SMALTI_AXES; axis++) {
		if (strategy->parts[axis] == ALL && strchr(text, '.'))
			return fail(text, error);
		if (strategy->parts[axis] == ALL)
			strategy->parts[axis] = strategy->count;
		parts *= strategy->parts[axis];
	}
	if (strategy->parts[SMALTI_AXIS_BRANCH] > 2 && !strategy->replicas)
		return smalti_fail(error, SMALTI_EINVAL, "strategy: expected cfg of 2 at most, found '%s'",
				   text);
	if (strategy->parts[SMALTI_AXIS_SHARD] > SMALTI_MAX_SHARDS)
		return smalti_fail(error, SMALTI_EINVAL,
				   "strategy: expected %d shards of heads at most, found '%s'",
				   SMALTI_MAX_SHARDS, text);
	if (smalti_strategy_is_naive(strategy) && strategy->parts[SMALTI_AXIS_STAGE] > 1)
		return smalti_fail(error, SMALTI_EINVAL,
				   "strategy: expected naive without a pipeline, as its slices are images of "
				   "their own; found '%s'",
				   text);
	if (parts > MAX_PARTS)
		return smalti_fail(error, SMALTI_EINVAL, "strategy: expected %d parts at most, found '%s'",
				   MAX_PARTS, text);
	if (strategy->count > parts) /* the first places only */
		strategy->count = (int)parts;
	return 0;
}

int smalti_shares_read(const char *text, int places, double *shares, struct smalti_error *error)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	double sum = 0;
	const int status = smalti_parse_numbers(text, ':', places, shares, &ignored);
	for (int place = 0; status == 0 && place < places; place++)
		sum += shares[place];
	if (sum > 0)
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "shares: expected %d (the CPUs', then each device's, with ':' between them, not all 0) or auto, "
	    "found '%s'",
	    places, text);
}

int smalti_strategy_read(struct smalti_strategy *strategy, const char *text, const double *shares, int places,
			 struct smalti_error *error)
{
	*strategy = (struct smalti_strategy){.patches = 1, .warmup = 1};
	if (read_axes(strategy, text, error) == 0 && take_places(strategy, shares, places, error) == 0 &&
	    count_parts(strategy, text, error) == 0 && smalti_strategy_sum_shares(strategy, error) == 0) {
		strategy->patches = strategy->parts[SMALTI_AXIS_STAGE];
		return 0;
	}
	smalti_strategy_free(strategy);
	return -1;
}

/* The characters around shares that hold from a step on. */

static const char shares_end = ',', step_begin = '@';

bool smalti_shares_cut_again(const char *text)
{
	return text && strchr(text, shares_end);
}

static int read_cut(struct smalti_strategy *cut, const char *text, const char *shares, int places,
		    struct smalti_error *error)
{
	SCOPED(free) double *share = smalti_calloc(places, sizeof(*share), error);
	if (!share || smalti_shares_read(shares, places, share, error) < 0)
		return -1;
	return smalti_strategy_read(cut, text, share, places, error);
}

/* Reads the next shares, of A:B:...@STEP, in which '@' becomes an end. */
static int read_next(struct smalti_strategy *cut, const char *text, char *shares, int places, int64_t steps,
		     struct smalti_error *error)
{
	struct smalti_error ignored = SMALTI_NO_ERROR;
	char *at = strchr(shares, step_begin);
	int64_t step;
	if (!at || smalti_parse_int64(at + 1, cut->first_pass + 2, steps, &step, &ignored) < 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "shares: expected A:B:...@STEP, from a step behind %lld on and %lld at "
				   "most, found '%s'",
				   (long long)cut->first_pass + 1, (long long)steps, shares);
	*at = '\0';
	cut->next = smalti_calloc(1, sizeof(*cut->next), error);
	if (!cut->next || read_cut(cut->next, text, shares, places, error) < 0)
		return -1;
	cut->next->first_pass = step - 1;
	return 0;
}

static int read_cuts(struct smalti_strategy *strategy, const char *text, const char *shares, int places,
		     int64_t steps, struct smalti_error *error)
{
	struct smalti_strategy *cut = NULL;
	for (const char *at = shares, *end; at; at = end ? end + 1 : NULL) {
		end = strchr(at, shares_end);
		const int length = end ? (int)(end - at) : (int)strlen(at);
		SCOPED(free) char *part = smalti_format(error, "%.*s", length, at);
		if (!part || (cut ? read_next(cut, text, part, places, steps, error)
				  : read_cut(strategy, text, part, places, error)) < 0)
			return -1;
		cut = cut ? cut->next : strategy;
	}
	return 0;
}

/* Tells whether shards are the same: at the same places, of the same heads and columns. */
static bool has_shards_of(const struct smalti_strategy *a, const struct smalti_strategy *b)
{
	const enum smalti_axis axis = SMALTI_AXIS_SHARD;
	const int shards = a->parts[axis];
	if (shards == 1 && b->parts[axis] == 1)
		return true;
	bool same = shards == b->parts[axis] && a->count == b->count &&
		    memcmp(a->place, b->place, (size_t)a->count * sizeof(*a->place)) == 0;
	for (int i = 1; same && i < shards; i++)
		same = smalti_strategy_begin(a, axis, INT32_MAX, i) ==
		       smalti_strategy_begin(b, axis, INT32_MAX, i);
	return same;
}

/* Checks that only tokens are cut again: that no pass keeps anything, and that no weights move. */
static int check_cuts(const struct smalti_strategy *strategy, const char *text, struct smalti_error *error)
{
	bool tokens = !strategy->next;
	for (const struct smalti_strategy *cut = strategy; strategy->next && cut; cut = cut->next) {
		tokens |= cut->parts[SMALTI_AXIS_RANK] > 1;
		if (!smalti_strategy_is_exact(cut))
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "shares: expected an exact strategy (patch, ring) to cut tokens again "
			    "between steps, found '%s'",
			    text);
		if (!has_shards_of(strategy, cut))
			return smalti_fail(error, SMALTI_EINVAL,
					   "shares: expected those of heads to stay, as weights do not move "
					   "between steps: cut tokens again (patch, ring), found '%s'",
					   text);
	}
	return tokens ? 0
		      : smalti_fail(error, SMALTI_EINVAL,
				    "shares: expected two ranks of tokens or more (patch, ring) to cut them "
				    "again between steps, found '%s'",
				    text);
}

int smalti_strategy_read_cuts(struct smalti_strategy *strategy, const char *text, const char *shares,
			      int places, int64_t steps, struct smalti_error *error)
{
	*strategy = (struct smalti_strategy){.place = NULL};
	if (read_cuts(strategy, text, shares, places, steps, error) == 0 &&
	    check_cuts(strategy, text, error) == 0)
		return 0;
	smalti_strategy_free(strategy);
	return -1;
}
