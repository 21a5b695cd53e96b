/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pool.h"
#include "jobs/plan.h"
#include "rt/places.h"
#include "train/sample_count.h"

static int64_t bytes_of_list(const struct smalti_parameter *list, int64_t count)
{
	int64_t bytes = 0;
	for (int64_t i = 0; i < count; i++)
		bytes += smalti_pool_block_bytes(list[i].count * smalti_dtype_bytes(list[i].dtype));
	return bytes;
}

int64_t smalti_trainer_bytes(const struct smalti_trainer *trainer)
{
	const struct smalti_parameters *p = trainer->parameters, *base = trainer->base;
	const int64_t caption =
	    trainer->null_tokens * trainer->config.caption_channels * (int64_t)sizeof(float);
	const int64_t sums = p->count * smalti_pool_block_bytes(sizeof(double));
	return bytes_of_list(p->list, p->count) + (base ? bytes_of_list(base->list, base->count) : 0) +
	       bytes_of_list(trainer->averages.list, trainer->averages.count) +
	       bytes_of_list(trainer->optimizer->state, trainer->optimizer->state_count) +
	       smalti_trained_step_bytes(trainer->graph, trainer->session) +
	       smalti_pool_block_bytes(caption) + sums;
}

int64_t smalti_max_lanes(int64_t batch, int64_t lanes, int64_t micro_batch)
{
	int64_t max = 1, whole = 0, begun = 0, ended = 0; /* ended: samples of the whole lanes */
	for (int64_t lane = 0; lane < lanes; lane++) {
		while (ended + (batch - whole + lanes - 1) / lanes <= begun - micro_batch + 1)
			ended += (batch - whole++ + lanes - 1) / lanes;
		max = smalti_max(max, lane + 1 - whole + __builtin_popcountll((uint64_t)whole));
		begun += (batch - lane + lanes - 1) / lanes;
	}
	return max;
}

/* Returns the bytes of the loader's items: a batch, the next one, and those that it reads ahead. */
static int64_t bytes_of_items(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape)
{
	const struct smalti_transformer_config *c = &trainer->config;
	const struct smalti_train_options *o = trainer->options;
	const int64_t values =
	    2 * c->in_channels * shape->height * shape->width + shape->text_tokens * c->caption_channels;
	return (2 * o->batch + smalti_training_read_ahead(o)) * values *
	       smalti_dtype_bytes(trainer->features);
}

/* A search for the plan of a shape. */
struct search {
	const struct smalti_trainer *trainer;
	const struct smalti_step_shape *shape;
	struct smalti_sample_count samples;
	int64_t scratch;
	struct smalti_error error; /* of the first count that failed */
};

/* Counts the bytes of a plan. */
static void count(struct search *s, struct smalti_step_plan *plan)
{
	const struct smalti_trainer *trainer = s->trainer;
	const struct smalti_train_options *o = trainer->options;
	const struct smalti_parameters *p = trainer->parameters;
	const int64_t lanes = smalti_max_lanes(o->batch, smalti_min(o->lanes, o->batch), plan->micro_batch);
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t one = smalti_sample_count_bytes(&s->samples, s->shape, plan, &error);
	if (one < 0 && s->error.code == SMALTI_OK)
		s->error = error;
	plan->tiles = smalti_trainer_bytes(trainer) + lanes * bytes_of_list(p->list, p->count) +
		      plan->micro_batch * one;
	plan->scratch = s->scratch;
	plan->bytes =
	    plan->tiles + plan->scratch + bytes_of_items(trainer, s->shape) + (int64_t)SMALTI_PROGRAM_BYTES;
}

int64_t smalti_trainer_device_room(const struct smalti_trainer *trainer)
{
	struct smalti_device_shares min;
	smalti_places_smallest(trainer->session->places, &min);
	return min.tiles;
}

/* Main memory may get a copy of the tiles on devices. */
static bool fits(struct search *s, struct smalti_step_plan *plan)
{
	count(s, plan);
	return plan->bytes <= s->trainer->session->memory &&
	       plan->tiles <= smalti_trainer_device_room(s->trainer);
}

/* Searches the fastest that fits: all at once, then layer by layer, then with as few recomputed blocks as
 * possible; then with fewer samples at a time, if their number is free. */
static bool search(struct search *s, struct smalti_step_plan *plan)
{
	const int64_t layers = s->trainer->config.layers;
	plan->recomputed = 0;
	plan->bounded = false;
	if (fits(s, plan))
		return true;
	plan->bounded = true;
	for (;; plan->micro_batch--) {
		for (plan->recomputed = 0; plan->recomputed <= layers; plan->recomputed++)
			if (fits(s, plan))
				return true;
		plan->recomputed = layers;
		if (plan->micro_batch == 1 || s->trainer->options->micro)
			return false;
	}
}

/* Tells whether a requested plan fits with barriers between layers, as tasks in any order nearly do. *needed:
 * the bytes then. */
static bool fits_about(struct search *s, struct smalti_step_plan *plan, int64_t *needed)
{
	struct smalti_step_plan with_barriers = *plan;
	with_barriers.bounded = true;
	count(s, plan);
	count(s, &with_barriers);
	*needed = with_barriers.bytes;
	return with_barriers.bytes <= s->trainer->session->memory;
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

static bool has_devices(const struct smalti_trainer *trainer)
{
	return smalti_session_place_count(trainer->session) > 1;
}

/* Checks the least bytes, of the values between steps, if main memory has all tiles. Devices may hold them
 * elsewhere. */
static int check_min(const struct smalti_trainer *trainer, const struct smalti_step_shape *shape,
		     const struct smalti_step_plan *plan, struct smalti_error *error)
{
	const struct smalti_session *session = trainer->session;
	const int64_t bytes = smalti_trainer_bytes(trainer) + (int64_t)SMALTI_PROGRAM_BYTES;
	if (has_devices(trainer) || bytes <= session->memory || session->offloads)
		return 0;
	return refuse(trainer, shape, plan->micro_batch, bytes, error);
}

/* Opens the count of samples, and counts the workers' bytes for the kernels of one. */
static int open_search(struct search *s, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = s->trainer;
	const struct smalti_step_shape *shape = s->shape;
	const int64_t patch = trainer->config.patch_size, columns = shape->width / patch;
	const int64_t count = shape->height / patch * columns;
	struct smalti_tokens tokens;
	if (smalti_sample_count_open(&s->samples, trainer, error) < 0 ||
	    smalti_tokens_cut(&tokens, &trainer->strategy, count, columns,
			      smalti_training_tile_tokens(trainer->options, count), error) < 0)
		return -1;
	const struct smalti_trained_sample sample = {.tokens = &tokens, .text_tokens = shape->text_tokens};
	s->scratch = trainer->session->workers * smalti_trained_scratch(trainer->graph, &sample);
	smalti_tokens_free(&tokens);
	return 0;
}

/* Tells whether a plan counts: for the parts of a strategy it does not, and on devices only a search does. */
static bool plan_counts(const struct smalti_trainer *trainer)
{
	const bool searches = trainer->options->recomputation == SMALTI_RECOMPUTE_AUTO;
	return trainer->strategy.count == 0 && (searches || !has_devices(trainer));
}

/* Chooses a plan if a step can be counted. */
static int choose(struct search *s, struct smalti_step_plan *plan, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = s->trainer;
	int64_t needed = 0;
	if (open_search(s, error) < 0)
		return -1;
	const bool fitting = trainer->options->recomputation == SMALTI_RECOMPUTE_AUTO
				 ? search(s, plan)
				 : fits_about(s, plan, &needed);
	if (smalti_pass(error, &s->error) < 0)
		return -1;
	/* What a device has no room for moves to main memory, if that has some. */
	const bool moves = has_devices(trainer) && plan->bytes <= trainer->session->memory;
	return fitting || moves || trainer->session->offloads
		   ? 0
		   : refuse(trainer, s->shape, plan->micro_batch, needed ? needed : plan->bytes, error);
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
	const int status = counts ? choose(&s, &chosen, error) : check_min(trainer, shape, &chosen, error);
	if (counts)
		smalti_sample_count_close(&s.samples);
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
