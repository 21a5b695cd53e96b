/* SPDX-License-Identifier: Apache-2.0 */
#include "train/order.h"

static int64_t first_lane(const struct smalti_strategy *strategy, int64_t lanes, int replica)
{
	return smalti_strategy_begin(strategy, SMALTI_AXIS_BRANCH, lanes, replica);
}

int smalti_step_replica(const struct smalti_strategy *strategy, int64_t lanes, int64_t sample)
{
	int replica = 0;
	while (first_lane(strategy, lanes, replica + 1) <= sample % lanes)
		replica++;
	return replica;
}

/* Appends a turn to the slots that are there; returns how many are there then. */
static int64_t add_turn(struct smalti_step_order *order, const struct smalti_strategy *strategy, int64_t turn,
			int64_t count)
{
	for (int64_t first = 0; first < order->batch; first += order->lanes)
		for (int replica = 0; replica < strategy->parts[SMALTI_AXIS_BRANCH]; replica++) {
			const int64_t lane = first_lane(strategy, order->lanes, replica) + turn;
			if (lane >= first_lane(strategy, order->lanes, replica + 1) ||
			    lane + first >= order->batch)
				continue;
			if (first == 0)
				order->begun[lane] = count;
			order->slot[count++] = (struct smalti_step_slot){
			    .sample = lane + first, .lane = lane, .replica = replica, .begins = first == 0};
		}
	if (count > 0)
		order->slot[count - 1].ends = true;
	return count;
}

/* Finds when lanes are added, of which `whole` says how many samples were inserted when each was whole. */
static void add_lanes(struct smalti_step_order *order, const int64_t *whole)
{
	order->added[0] = INT64_MAX;
	for (int64_t lane = 1; lane < order->lanes; lane++) {
		const int64_t half = lane & -lane;
		for (int64_t i = lane - half; i < smalti_min(lane + half, order->lanes); i++)
			order->added[lane] = smalti_max(order->added[lane], whole[i]);
	}
}

int smalti_step_order_open(struct smalti_step_order *order, const struct smalti_strategy *strategy,
			   int64_t batch, int64_t lanes, struct smalti_error *error)
{
	*order = (struct smalti_step_order){.batch = batch, .lanes = lanes};
	order->slot = smalti_calloc(batch, sizeof(*order->slot), error);
	order->begun = smalti_calloc(lanes, sizeof(*order->begun), error);
	order->added = smalti_calloc(lanes, sizeof(*order->added), error);
	SCOPED(free) int64_t *whole = smalti_calloc(lanes, sizeof(*whole), error);
	if (!order->slot || !order->begun || !order->added || !whole)
		return -1;
	for (int64_t turn = 0, count = 0, begun = 0; count < batch; turn++, begun = count) {
		count = add_turn(order, strategy, turn, count);
		for (int64_t i = begun; i < count; i++)
			whole[order->slot[i].lane] = count;
	}
	add_lanes(order, whole);
	return 0;
}

void smalti_step_order_close(struct smalti_step_order *order)
{
	free(order->slot);
	free(order->begun);
	free(order->added);
	*order = (struct smalti_step_order){.batch = 0};
}

bool smalti_step_order_has(const struct smalti_step_order *order, int64_t lane, int64_t slot,
			   int64_t micro_batch)
{
	return order->begun[lane] <= slot && order->added[lane] > slot - micro_batch + 1;
}
