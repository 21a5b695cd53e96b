/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pool.h"
#include "jobs/plan.h"
#include "ranks/ranks.h"
#include "rt/place_facts.h"
#include "rt/places.h"
#include "train/order.h"
#include "train/sample_count.h"

/* Counts this process's tiles. */
static int64_t bytes_of_list(const struct smalti_parameter *list, int64_t count)
{
	int64_t bytes = 0;
	for (int64_t i = 0; i < count; i++)
		if (list[i].value && smalti_ranks_of(list[i].value->owner) == smalti_ranks_own())
			bytes += smalti_pool_block_bytes(list[i].count * smalti_dtype_bytes(list[i].dtype));
	return bytes;
}

int64_t smalti_trainer_bytes(const struct smalti_trainer *trainer)
{
	const struct smalti_parameters *p = trainer->parameters, *base = trainer->base;
	const int64_t caption =
	    trainer->null_tokens * trainer->config.caption_channels * (int64_t)sizeof(float);
	return bytes_of_list(p->list, p->count) + (base ? bytes_of_list(base->list, base->count) : 0) +
	       bytes_of_list(trainer->averages.list, trainer->averages.count) +
	       bytes_of_list(trainer->optimizer->state, trainer->optimizer->state_count) +
	       smalti_pool_block_bytes(caption);
}

/* Returns the bytes of the loader's items: this rank's of a batch, the next one, and those that it reads
 * ahead. */
static int64_t bytes_of_items(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape)
{
	const struct smalti_transformer_config *c = &trainer->config;
	const struct smalti_train_options *o = trainer->options;
	const int64_t values =
	    2 * c->in_channels * shape->height * shape->width + shape->text_tokens * c->caption_channels;
	int64_t own = 0;
	for (int64_t i = 0; i < o->batch; i++)
		own += smalti_sample_is_own(trainer, i);
	return (2 * own + smalti_training_read_ahead(o)) * values * smalti_dtype_bytes(trainer->features);
}

/* A search for the plan of a shape. */
struct search {
	const struct smalti_trainer *trainer;
	const struct smalti_step_shape *shape;
	struct smalti_sample_count samples;
	struct smalti_step_order order;
	int64_t scratch;
	struct smalti_error error; /* of the first count that failed */
};

/* Returns the bytes at a place of a lane's sums, which no sample in flight begins. */
static int64_t lane_at(const struct search *s, int64_t lane, int place)
{
	const int replica = s->order.slot[s->order.begun[lane]].replica;
	return s->samples.lane[smalti_sample_count_place(&s->samples, replica, place)];
}

/* Returns the bytes at a place of a slot's sample, with the sums of a lane that it begins. */
static int64_t sample_at(const struct search *s, const struct smalti_step_slot *slot, int place)
{
	const int like = smalti_sample_count_place(&s->samples, slot->replica, place);
	return slot->begins ? s->samples.first[like] : s->samples.sample[like];
}

/* Returns the most bytes of samples and lanes' sums at a place: while the sample of any slot is computed, and
 * those before it that may not have ended. Behind the last one the sums of replicas and parts are added,
 * whose memory is taken when it begins. */
static int64_t most_at(const struct search *s, int place, int64_t micro_batch)
{
	const struct smalti_step_order *order = &s->order;
	int64_t most = 0;
	for (int64_t slot = 0; slot < order->batch; slot++) {
		const int64_t oldest = smalti_max(0, slot - micro_batch + 1);
		int64_t bytes = slot == order->batch - 1 ? s->samples.come[place] : 0;
		for (int64_t lane = 0; lane < order->lanes; lane++)
			if (order->begun[lane] < oldest &&
			    smalti_step_order_has(order, lane, slot, micro_batch))
				bytes += lane_at(s, lane, place);
		for (int64_t i = oldest; i <= slot; i++)
			bytes += sample_at(s, &order->slot[i], place);
		most = smalti_max(most, bytes);
	}
	return most;
}

static int64_t tiles_at(const struct search *s, int place, int64_t micro_batch)
{
	const int64_t norms = s->trainer->parameters->count * smalti_pool_block_bytes(sizeof(double));
	return s->samples.around[place] + most_at(s, place, micro_batch) + norms;
}

static bool has_devices(const struct smalti_trainer *trainer)
{
	struct smalti_device_shares min;
	smalti_places_smallest(trainer->session->places, &min);
	return min.tiles < INT64_MAX;
}

/* Finds the device with the least room left. Without a strategy, and within a rank, each tile may come to
 * any. */
static void count_devices(const struct search *s, struct smalti_step_plan *plan)
{
	const struct smalti_session *session = s->trainer->session;
	struct smalti_device_shares min;
	smalti_places_smallest(session->places, &min);
	plan->device_tiles = plan->tiles;
	plan->device_room = min.tiles;
	plan->moving = 0;
	if (!has_devices(s->trainer))
		return;
	const bool placed = s->trainer->strategy.count > 0 && smalti_ranks_count() == 1;
	for (int place = 1; place < smalti_places_count(session->places); place++)
		plan->on_device[smalti_places_node(session->places, place)] =
		    placed ? tiles_at(s, place, plan->micro_batch) : plan->tiles;
	if (!placed)
		return;
	plan->device_tiles = 0;
	for (int place = 1; place < s->samples.places; place++) {
		const int64_t tiles = plan->on_device[smalti_places_node(session->places, place)];
		const int64_t room = smalti_place_facts_memory(session, place);
		plan->moving += tiles;
		if (room - tiles < plan->device_room - plan->device_tiles) {
			plan->device_tiles = tiles;
			plan->device_room = room;
		}
	}
}

/* Counts the bytes of a plan. */
static int count(struct search *s, struct smalti_step_plan *plan)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_sample_count_plan(&s->samples, s->shape, plan, &error) < 0) {
		if (s->error.code == SMALTI_OK)
			s->error = error;
		return -1;
	}
	plan->tiles = tiles_at(s, smalti_ranks_count() > 1 ? smalti_ranks_own() : 0, plan->micro_batch);
	plan->scratch = s->scratch;
	plan->bytes = plan->tiles + plan->scratch + bytes_of_items(s->trainer, s->shape) +
		      (int64_t)SMALTI_PROGRAM_BYTES;
	count_devices(s, plan);
	return 0;
}

/* Tells whether a plan fits on all ranks. Main memory may get a copy of the tiles on devices. */
static bool fits(struct search *s, struct smalti_step_plan *plan)
{
	const bool here = count(s, plan) == 0 && plan->bytes <= s->trainer->session->memory &&
			  plan->device_tiles <= plan->device_room;
	return smalti_ranks_min(here);
}

/* Searches the fastest that fits: all at once, then layer by layer, then with as few recomputed blocks as
 * possible; then with fewer samples at a time, if their number is free. Else leaves the smallest. */
static void search(struct search *s, struct smalti_step_plan *plan)
{
	const int64_t layers = s->trainer->config.layers;
	plan->recomputed = 0;
	plan->bounded = false;
	if (fits(s, plan))
		return;
	plan->bounded = true;
	for (;; plan->micro_batch--) {
		for (plan->recomputed = 0; plan->recomputed <= layers; plan->recomputed++)
			if (fits(s, plan))
				return;
		plan->recomputed = layers;
		if (plan->micro_batch == 1 || s->trainer->options->micro)
			return;
	}
}

/* Returns the bytes of main memory that a plan needs, with what a device has no room for. */
static int64_t needed_bytes(const struct smalti_step_plan *plan)
{
	return plan->bytes + (plan->device_tiles > plan->device_room ? plan->moving : 0);
}

/* Counts a requested plan; returns the bytes that it needs with barriers between layers, as tasks in any
 * order nearly do. */
static int64_t count_about(struct search *s, struct smalti_step_plan *plan)
{
	struct smalti_step_plan with_barriers = *plan;
	with_barriers.bounded = true;
	count(s, plan);
	count(s, &with_barriers);
	return needed_bytes(&with_barriers);
}

/* Chooses each replica's samples at a time. Workers would wait if small ones ended before the next were
 * inserted; two large ones suffice, and more would only take memory. */
static int64_t choose_micro_batch(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape)
{
	enum { LEAST = 2, TOKENS = 1024 };
	const int64_t batch = trainer->options->batch, patch = trainer->config.patch_size;
	const int64_t tokens = smalti_max(1, shape->height / patch * (shape->width / patch));
	const int64_t replicas = trainer->strategy.parts[SMALTI_AXIS_BRANCH];
	if (trainer->options->micro)
		return smalti_min(batch, trainer->options->micro);
	return smalti_min(batch, replicas * smalti_max(LEAST, TOKENS / tokens));
}

static int refuse(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape,
		  int64_t micro_batch, int64_t bytes, struct smalti_error *error)
{
	const bool kept = trainer->options->recomputation == SMALTI_RECOMPUTE_NONE;
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "a step with %" PRId64 " samples at a time, of %" PRId64 "x%" PRId64 " latents and %" PRId64
	    " tokens of captions, needs %" PRId64 " MB of memory%s, but %" PRId64
	    " MB are allowed: give %sa smaller --micro or fewer --lanes, --optimizer came, no average "
	    "(--ema 0), a --scratch directory, or a higher --memory-limit",
	    micro_batch, shape->height, shape->width, shape->text_tokens, (bytes >> 20) + 1,
	    kept ? "" : " though every block is computed again", trainer->session->memory >> 20,
	    kept ? "--recompute auto, " : "");
}

/* Opens the count of samples, and counts the workers' bytes for the kernels of one. */
static int open_search(struct search *s, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = s->trainer;
	const struct smalti_step_shape *shape = s->shape;
	const int64_t patch = trainer->config.patch_size, columns = shape->width / patch;
	const int64_t count = shape->height / patch * columns;
	struct smalti_tokens tokens;
	if (smalti_sample_count_open(&s->samples, trainer, shape, error) < 0 ||
	    smalti_step_order_open(&s->order, &trainer->strategy, trainer->options->batch,
				   smalti_min(trainer->options->lanes, trainer->options->batch), error) < 0 ||
	    smalti_tokens_cut(&tokens, &trainer->strategy, count, columns,
			      smalti_training_tile_tokens(trainer->options, count), error) < 0)
		return -1;
	const struct smalti_trained_sample sample = {.tokens = &tokens, .text_tokens = shape->text_tokens};
	s->scratch = trainer->session->workers * smalti_trained_scratch(trainer->graph, &sample);
	smalti_tokens_free(&tokens);
	return 0;
}

/* Tells whether a plan counts: on devices only a search does. */
static bool plan_counts(const struct smalti_trainer *trainer)
{
	return trainer->options->recomputation == SMALTI_RECOMPUTE_AUTO || !has_devices(trainer);
}

/* Chooses a plan if a step can be counted. */
static int choose(struct search *s, struct smalti_step_plan *plan, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = s->trainer;
	int64_t needed;
	if (smalti_ranks_agree(open_search(s, error), NULL, error) < 0)
		return -1;
	if (trainer->options->recomputation == SMALTI_RECOMPUTE_AUTO) {
		search(s, plan);
		needed = needed_bytes(plan);
	} else {
		needed = count_about(s, plan);
	}
	if (smalti_pass(error, &s->error) < 0)
		return -1;
	if (needed <= trainer->session->memory || trainer->session->offloads)
		return 0;
	return refuse(trainer, s->shape, plan->micro_batch, needed, error);
}

static bool is_for(const struct smalti_step_plan *plan, const struct smalti_step_shape *shape)
{
	return plan->shape.height == shape->height && plan->shape.width == shape->width &&
	       plan->shape.text_tokens == shape->text_tokens;
}

int smalti_step_plan_choose(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape,
			    struct smalti_step_plan *plan, struct smalti_error *error)
{
	const bool again = trainer->options->recomputation == SMALTI_RECOMPUTE_BLOCK,
		   counts = plan_counts(trainer);
	if (is_for(plan, shape))
		return 0;
	struct smalti_step_plan chosen = {.micro_batch = choose_micro_batch(trainer, shape),
					  .recomputed = again ? trainer->config.layers : 0,
					  .bounded = again};
	struct search s = {.trainer = trainer, .shape = shape, .error = SMALTI_NO_ERROR};
	const int status = counts ? smalti_ranks_agree(choose(&s, &chosen, error), NULL, error) : 0;
	if (counts)
		smalti_sample_count_close(&s.samples);
	smalti_step_order_close(&s.order);
	if (status == 0) {
		*plan = chosen;
		plan->shape = *shape;
	}
	return status;
}

int64_t smalti_sample_text_tokens(const struct smalti_trainer *trainer,
				  const struct smalti_training_sample *sample)
{
	const bool own = trainer->options->data.null_tokens == SMALTI_NULL_TOKENS_OWN;
	return sample->dropped && own ? trainer->null_tokens : sample->tokens;
}

struct smalti_step_shape smalti_step_shape_of(const struct smalti_trainer *trainer,
					      const struct smalti_training_sample *samples, int64_t count)
{
	struct smalti_step_shape shape = {0};
	for (int64_t i = 0; i < count; i++)
		smalti_step_shape_widen(&shape, samples[i].height, samples[i].width,
					smalti_sample_text_tokens(trainer, &samples[i]));
	return shape;
}

void smalti_step_shape_widen(struct smalti_step_shape *shape, int64_t height, int64_t width,
			     int64_t text_tokens)
{
	if (height * width > shape->height * shape->width) {
		shape->height = height;
		shape->width = width;
	}
	shape->text_tokens = smalti_max(shape->text_tokens, text_tokens);
}
