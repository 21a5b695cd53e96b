/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/strategy/strategy.h"

#include <math.h>

const struct smalti_strategy smalti_strategy_none = {.parts = {1, 1, 1, 1}, .patches = 1, .warmup = 1};

static void free_places(struct smalti_strategy *strategy)
{
	free(strategy->place);
	free(strategy->share);
	for (int axis = 0; axis < SMALTI_AXES; axis++)
		free(strategy->below[axis]);
}

void smalti_strategy_free(struct smalti_strategy *strategy)
{
	free_places(strategy);
	for (struct smalti_strategy *cut = strategy->next, *next; cut; cut = next) {
		next = cut->next;
		free_places(cut);
		free(cut);
	}
	*strategy = (struct smalti_strategy){.place = NULL};
}

bool smalti_strategy_keeps(const struct smalti_strategy *strategy)
{
	return strategy->parts[SMALTI_AXIS_STAGE] > 1 ||
	       (strategy->parts[SMALTI_AXIS_RANK] > 1 && strategy->exchange == SMALTI_EXCHANGE_DISPLACED);
}

bool smalti_strategy_is_exact(const struct smalti_strategy *strategy)
{
	return !smalti_strategy_keeps(strategy) &&
	       (strategy->parts[SMALTI_AXIS_RANK] == 1 || strategy->exchange <= SMALTI_EXCHANGE_RING);
}

bool smalti_strategy_is_naive(const struct smalti_strategy *strategy)
{
	return strategy->exchange >= SMALTI_EXCHANGE_NAIVE;
}

/* Returns the strategy with the shares of a pass. */
static const struct smalti_strategy *cut_of_pass(const struct smalti_strategy *strategy, int64_t pass)
{
	while (strategy->next && strategy->next->first_pass <= pass)
		strategy = strategy->next;
	return strategy;
}

const struct smalti_strategy *smalti_strategy_last(const struct smalti_strategy *strategy)
{
	return cut_of_pass(strategy, INT64_MAX);
}

struct smalti_strategy smalti_strategy_of_pass(const struct smalti_strategy *strategy, int64_t pass)
{
	struct smalti_strategy now = *cut_of_pass(strategy, pass);
	if (now.exchange == SMALTI_EXCHANGE_NAIVE_ALTERNATING)
		now.exchange = pass % 2 ? SMALTI_EXCHANGE_NAIVE_COLUMNS : SMALTI_EXCHANGE_NAIVE;
	return now;
}

int smalti_strategy_kind(const struct smalti_strategy *strategy, int64_t pass)
{
	int kind = strategy->exchange == SMALTI_EXCHANGE_NAIVE_ALTERNATING ? (int)(pass % 2) : 0;
	for (; strategy->next && strategy->next->first_pass <= pass; strategy = strategy->next)
		kind++; /* an alternating strategy is not cut again */
	return kind;
}

/* Numbers a part, with the ranks innermost. */
static int part_of(const struct smalti_strategy *strategy, const int at[SMALTI_AXES])
{
	int part = 0;
	for (int axis = 0; axis < SMALTI_AXES; axis++)
		part = part * strategy->parts[axis] + at[axis] % strategy->parts[axis];
	return part;
}

int smalti_strategy_place(const struct smalti_strategy *strategy, int branch, int stage, int shard, int rank)
{
	if (strategy->count == 0)
		return SMALTI_ANYWHERE;
	return strategy->place[part_of(strategy, (int[]){branch, stage, shard, rank}) % strategy->count];
}

int smalti_strategy_branch(const struct smalti_strategy *strategy, int place)
{
	const int *parts = strategy->parts;
	const int inner = parts[SMALTI_AXIS_STAGE] * parts[SMALTI_AXIS_SHARD] * parts[SMALTI_AXIS_RANK];
	for (int part = 0; part < strategy->count; part++)
		if (strategy->place[part] == place)
			return part / inner % parts[SMALTI_AXIS_BRANCH];
	return 0;
}

void smalti_strategy_shares(const struct smalti_strategy *strategy, double *shares, int places)
{
	const int *parts = strategy->parts;
	const int all = parts[0] * parts[1] * parts[2] * parts[3];
	for (int place = 0; place < places; place++)
		shares[place] = 0;
	for (int part = 0; part < all && strategy->count > 0; part++) {
		const int i = part % strategy->count;
		shares[strategy->place[i]] += strategy->share[i];
	}
}

/* Sums the shares of all parts below `part` on an axis. */
static double share_below(const struct smalti_strategy *strategy, enum smalti_axis axis, int part)
{
	const int *parts = strategy->parts;
	double share = 0;
	int at[SMALTI_AXES];
	for (at[0] = 0; at[0] < parts[0]; at[0]++)
		for (at[1] = 0; at[1] < parts[1]; at[1]++)
			for (at[2] = 0; at[2] < parts[2]; at[2]++)
				for (at[3] = 0; at[3] < parts[3]; at[3]++)
					if (at[axis] < part)
						share +=
						    strategy->share[part_of(strategy, at) % strategy->count];
	return share;
}

int smalti_strategy_sum_shares(struct smalti_strategy *strategy, struct smalti_error *error)
{
	for (int axis = 0; axis < SMALTI_AXES && strategy->count > 0; axis++) {
		const int parts = strategy->parts[axis];
		double *below = smalti_calloc(parts + 1, sizeof(*below), error);
		if (!below)
			return -1;
		strategy->below[axis] = below;
		for (int part = 1; part <= parts; part++)
			below[part] = share_below(strategy, axis, part);
	}
	return 0;
}

int64_t smalti_strategy_begin(const struct smalti_strategy *strategy, enum smalti_axis axis, int64_t count,
			      int part)
{
	const int parts = strategy->parts[axis];
	if (part <= 0 || part >= parts)
		return part <= 0 ? 0 : count;
	if (strategy->count == 0)
		return count * part / parts;
	const double *below = strategy->below[axis];
	return (int64_t)floor((double)count * below[part] / below[parts] + 0.5);
}

int smalti_strategy_stage(const struct smalti_strategy *strategy, int64_t layers, int64_t layer)
{
	int stage = 0;
	while (layer >= smalti_strategy_begin(strategy, SMALTI_AXIS_STAGE, layers, stage + 1))
		stage++;
	return stage;
}

/* The tokens of a patch, rank and shard. */
struct piece {
	int64_t begin, end;
	struct smalti_token_band of;
};

/* Tells whether ranks are whole columns of the image. */
static bool is_of_columns(const struct smalti_tokens *tokens)
{
	return tokens->strategy->exchange == SMALTI_EXCHANGE_NAIVE_COLUMNS;
}

/* Returns the first of `count` tokens that belongs to a rank. */
static int64_t rank_begin(const struct smalti_tokens *tokens, int64_t count, int rank)
{
	const int64_t line = is_of_columns(tokens)                        ? tokens->rows
			     : smalti_strategy_is_naive(tokens->strategy) ? tokens->columns
									  : 1;
	return line * smalti_strategy_begin(tokens->strategy, SMALTI_AXIS_RANK, count / line, rank);
}

/* Returns piece `number` of all, in the tokens' order. */
static struct piece piece_at(const struct smalti_tokens *tokens, int64_t number)
{
	const struct smalti_strategy *strategy = tokens->strategy;
	const int64_t count = tokens->rows * tokens->columns;
	const int ranks = strategy->parts[SMALTI_AXIS_RANK], shards = strategy->parts[SMALTI_AXIS_SHARD];
	const int shard = (int)(number % shards), rank = (int)(number / shards % ranks);
	const int64_t patch = number / shards / ranks;
	const int64_t patch_begin = count * patch / strategy->patches;
	const int64_t patch_tokens = count * (patch + 1) / strategy->patches - patch_begin;
	const int64_t begin = rank_begin(tokens, patch_tokens, rank);
	const int64_t own = rank_begin(tokens, patch_tokens, rank + 1) - begin;
	return (struct piece){
	    patch_begin + begin + smalti_strategy_begin(strategy, SMALTI_AXIS_SHARD, own, shard),
	    patch_begin + begin + smalti_strategy_begin(strategy, SMALTI_AXIS_SHARD, own, shard + 1),
	    {patch, rank, shard}};
}

static int64_t piece_count(const struct smalti_strategy *strategy)
{
	return strategy->patches * strategy->parts[SMALTI_AXIS_RANK] * strategy->parts[SMALTI_AXIS_SHARD];
}

/* Counts the fewest bands of at most `max` tokens; their sizes differ by one token at most. */
static int64_t band_count(const struct piece *piece, int64_t max)
{
	return (piece->end - piece->begin + max - 1) / max;
}

static int allocate(struct smalti_tokens *tokens, int64_t bands, struct smalti_error *error)
{
	struct smalti_partition *p = &tokens->partition;
	p->bands = bands;
	p->first = smalti_calloc(bands + 1, sizeof(*p->first), error);
	p->owner = smalti_calloc(bands, sizeof(*p->owner), error);
	tokens->band = smalti_calloc(bands, sizeof(*tokens->band), error);
	if (p->first && p->owner && tokens->band)
		return 0;
	smalti_tokens_free(tokens);
	return -1;
}

int smalti_tokens_cut(struct smalti_tokens *tokens, const struct smalti_strategy *strategy, int64_t count,
		      int64_t columns, int64_t band_tokens, struct smalti_error *error)
{
	int64_t bands = 0, band = 0;
	*tokens = (struct smalti_tokens){.strategy = strategy, .rows = count / columns, .columns = columns};
	for (int64_t i = 0; i < piece_count(strategy); i++) {
		const struct piece piece = piece_at(tokens, i);
		bands += band_count(&piece, band_tokens);
	}
	if (allocate(tokens, bands, error) < 0)
		return -1;
	for (int64_t i = 0; i < piece_count(strategy); i++) {
		const struct piece piece = piece_at(tokens, i);
		const int64_t own = band_count(&piece, band_tokens);
		for (int64_t j = 0; j < own; j++, band++) {
			tokens->partition.first[band] = piece.begin + (piece.end - piece.begin) * j / own;
			tokens->partition.owner[band] =
			    smalti_strategy_place(strategy, 0, 0, piece.of.shard, piece.of.rank);
			tokens->band[band] = piece.of;
		}
	}
	tokens->partition.first[bands] = count;
	return 0;
}

int64_t smalti_tokens_begin(const struct smalti_tokens *tokens, int rank)
{
	int64_t band = 0;
	while (band < tokens->partition.bands && tokens->band[band].rank < rank)
		band++;
	return tokens->partition.first[band];
}

int64_t smalti_tokens_columns(const struct smalti_tokens *tokens, int rank)
{
	if (!is_of_columns(tokens))
		return tokens->columns;
	return (smalti_tokens_begin(tokens, rank + 1) - smalti_tokens_begin(tokens, rank)) / tokens->rows;
}

struct smalti_token_area smalti_tokens_area(const struct smalti_tokens *tokens, int64_t band)
{
	const int rank = tokens->band[band].rank;
	const int64_t first = is_of_columns(tokens) ? smalti_tokens_begin(tokens, rank) : 0;
	return (struct smalti_token_area){first / tokens->rows, smalti_tokens_columns(tokens, rank), first};
}

void smalti_tokens_free(struct smalti_tokens *tokens)
{
	smalti_partition_free(&tokens->partition);
	free(tokens->band);
	tokens->band = NULL;
}
