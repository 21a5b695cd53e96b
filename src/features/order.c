/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mix.h"
#include "features/reader.h"

struct smalti_features_order {
	bool shuffled;
	const int64_t *rows;
	int64_t *shards; /* those of this part, in turn */
	int64_t shard_count;
	int64_t at, row; /* what the buffer gets next */
	struct smalti_features_place *buffer;
	int64_t capacity, count;
	uint64_t random;
};

/* Draws a whole number below n. */
static int64_t draw(uint64_t *state, int64_t n)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return (int64_t)(uint64_t)(((unsigned __int128)smalti_mix(*state) * (uint64_t)n) >> 64);
}

static uint64_t stream(const struct smalti_features_options *options, uint64_t number)
{
	return smalti_mix(smalti_mix(smalti_mix(options->seed) + options->epoch) + number);
}

/* All parts shuffle the shards alike; the one at place i is for part i mod `parts`. */
static void deal(struct smalti_features_order *order, const struct smalti_features_options *options,
		 int64_t shards)
{
	uint64_t random = stream(options, 0);
	for (int64_t i = 0; i < shards; i++)
		order->shards[i] = i;
	for (int64_t i = shards - 1; i > 0 && order->shuffled; i--) {
		const int64_t j = draw(&random, i + 1), kept = order->shards[i];
		order->shards[i] = order->shards[j];
		order->shards[j] = kept;
	}
	for (int64_t i = options->part; i < shards; i += options->parts)
		order->shards[order->shard_count++] = order->shards[i];
}

struct smalti_features_order *smalti_features_order_open(const struct smalti_features_options *options,
							 const int64_t *rows, int64_t shards,
							 struct smalti_error *error)
{
	enum { BUFFER = 1024 };
	struct smalti_features_order *order = smalti_calloc(1, sizeof(*order), error);
	if (!order)
		return NULL;
	order->shuffled = options->shuffled;
	order->rows = rows;
	order->capacity = !options->shuffled ? 1 : options->buffer ? options->buffer : BUFFER;
	order->random = stream(options, 1 + (uint64_t)options->part);
	order->shards = smalti_calloc(shards + 1, sizeof(*order->shards), error);
	order->buffer = smalti_calloc(order->capacity, sizeof(*order->buffer), error);
	if (!order->shards || !order->buffer) {
		smalti_features_order_close(order);
		return NULL;
	}
	deal(order, options, shards);
	return order;
}

void smalti_features_order_close(struct smalti_features_order *order)
{
	if (!order)
		return;
	free(order->shards);
	free(order->buffer);
	free(order);
}

static bool feed(struct smalti_features_order *order, struct smalti_features_place *place)
{
	while (order->at < order->shard_count && order->row == order->rows[order->shards[order->at]]) {
		order->at++;
		order->row = 0;
	}
	if (order->at == order->shard_count)
		return false;
	*place = (struct smalti_features_place){order->shards[order->at], order->row++};
	return true;
}

bool smalti_features_order_next(struct smalti_features_order *order, struct smalti_features_place *place)
{
	while (order->count < order->capacity && feed(order, &order->buffer[order->count]))
		order->count++;
	if (order->count == 0)
		return false;
	const int64_t chosen = order->shuffled ? draw(&order->random, order->count) : 0;
	*place = order->buffer[chosen];
	order->buffer[chosen] = order->buffer[--order->count];
	return true;
}

void smalti_features_order_skip(struct smalti_features_order *order, int64_t count)
{
	struct smalti_features_place place;
	while (count > 0 && smalti_features_order_next(order, &place))
		count--;
}
