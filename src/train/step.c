/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "codelets/codelets.h"
#include "graphs/deliver.h"
#include "host/pool.h"
#include "ranks/ranks.h"
#include "rt/session.h"
#include "train/order.h"
#include "train/trainer.h"

#include <math.h>

/* The sum of a lane and another one, after the samples of both have ended. */
struct sum {
	struct smalti_task_group *task_group;
	int64_t samples; /* samples that were inserted before */
};

/* The gradients of a step. Each part of each lane has a tile for each parameter, while it is needed. */
struct lanes {
	const struct smalti_trainer *trainer;
	struct smalti_tile ***gradients; /* NULL: none yet, or they were added to another lane's */
	int64_t count;
	int parts;
	struct sum *sums; /* in the order of their insertion; each leaves one lane less */
	int64_t inserted, ended;
};

static struct smalti_tile ***of_lane(const struct lanes *lanes, int64_t lane)
{
	return lanes->gradients + lane * lanes->parts;
}

static int begin_lane(struct lanes *lanes, int64_t lane, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = lanes->trainer;
	const struct smalti_parameters *parameters = trainer->parameters;
	for (int part = 0; part < lanes->parts; part++) {
		struct smalti_tile **tiles =
		    smalti_calloc(parameters->count, sizeof(struct smalti_tile *), error);
		of_lane(lanes, lane)[part] = tiles;
		if (!tiles)
			return -1;
		for (int64_t i = 0; i < parameters->count; i++)
			if (smalti_trained_gives(trainer->graph, part, i))
				tiles[i] = smalti_parameter_tile(&parameters->list[i], trainer->task_group);
	}
	return 0;
}

static void release_part(struct lanes *lanes, int64_t lane, int part)
{
	struct smalti_tile **tiles = of_lane(lanes, lane)[part];
	for (int64_t i = 0; tiles && i < lanes->trainer->parameters->count; i++)
		smalti_tile_release(tiles[i]);
	free(tiles);
	of_lane(lanes, lane)[part] = NULL;
}

static void release_lane(struct lanes *lanes, int64_t lane)
{
	for (int part = 0; part < lanes->parts; part++)
		release_part(lanes, lane, part);
}

/* Returns the binary digits that a number has at its end in common with another one, as a number that grows
 * with their count. */
static unsigned common_digits(int number, int other)
{
	const unsigned differ = (unsigned)(number ^ other);
	return (differ & -differ) - 1; /* none differs: the largest */
}

/* Returns where the gradients at two places are added. Replicas are added where more of the last binary
 * digits are those of the owner's replica: so each replica receives as many bytes as the others, and the last
 * sum is at the owner's. Parts of a replica are added at the owner. */
static int sum_place(const struct smalti_strategy *strategy, int owner, int x, int y)
{
	if (x == y || owner == SMALTI_ANYWHERE)
		return y;
	const int at_x = smalti_strategy_branch(strategy, x), at_y = smalti_strategy_branch(strategy, y),
		  at_owner = smalti_strategy_branch(strategy, owner);
	if (at_x == at_y)
		return owner;
	return common_digits(at_x, at_owner) > common_digits(at_y, at_owner) ? x : y;
}

void smalti_gradients_add(const struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			  struct smalti_tile *const *from, struct smalti_tile *const *to)
{
	for (int64_t i = 0; i < parameters->count; i++) {
		const struct smalti_parameter *parameter = &parameters->list[i];
		struct smalti_tile *x = from[i], *y = to[i];
		if (!x || !y || !parameter->value)
			continue;
		y->owner = sum_place(parameters->strategy, parameter->value->owner, x->owner, y->owner);
		smalti_task_group_place(task_group, y->owner);
		smalti_insert(add, task_group, (.x = x, .y = y), .count = parameter->count);
	}
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
}

/* Adds a lane to another; `samples` were inserted so far. */
static int add_lane(struct lanes *lanes, int64_t to, int64_t from, int64_t samples,
		    struct smalti_error *error)
{
	struct smalti_task_group *task_group =
	    smalti_task_group_new(lanes->trainer->session, "sum", INT64_MAX, error);
	if (!task_group)
		return -1;
	smalti_task_group_depends_on(task_group, lanes->trainer->task_group);
	lanes->sums[lanes->inserted++] = (struct sum){task_group, samples};
	for (int part = 0; part < lanes->parts; part++)
		smalti_gradients_add(lanes->trainer->parameters, task_group, of_lane(lanes, from)[part],
				     of_lane(lanes, to)[part]);
	release_lane(lanes, from);
	return 0;
}

/* Waits for the sums of samples that have ended, so that an added lane is released before the next begins. */
static int end_sums(struct lanes *lanes, int64_t samples, struct smalti_error *error)
{
	int status = 0;
	while (lanes->ended < lanes->inserted && lanes->sums[lanes->ended].samples <= samples) {
		struct smalti_task_group *task_group = lanes->sums[lanes->ended++].task_group;
		smalti_task_group_wait(task_group);
		if (smalti_task_group_status(task_group, status < 0 ? NULL : error) < 0)
			status = -1;
		smalti_task_group_free(task_group);
	}
	return smalti_ranks_agree(status, NULL, error);
}

/* Adds the parts of the first lane at the end. The first part takes over gradients that it does not have. */
static void add_parts(struct lanes *lanes)
{
	struct smalti_tile **sum = of_lane(lanes, 0)[0];
	for (int part = 1; part < lanes->parts; part++) {
		struct smalti_tile **own = of_lane(lanes, 0)[part];
		smalti_gradients_add(lanes->trainer->parameters, lanes->trainer->task_group, own, sum);
		for (int64_t i = 0; i < lanes->trainer->parameters->count; i++)
			if (!sum[i]) {
				sum[i] = own[i];
				own[i] = NULL;
			}
		release_part(lanes, 0, part);
	}
}

/* Adds the lanes that the order adds behind so many samples, so that few lanes are needed at a time. */
static int add_complete(struct lanes *lanes, const struct smalti_step_order *order, int64_t samples,
			struct smalti_error *error)
{
	for (int64_t s = 1; s < order->lanes; s *= 2)
		for (int64_t i = 0; i + s < order->lanes; i += 2 * s)
			if (order->added[i + s] == samples && add_lane(lanes, i, i + s, samples, error) < 0)
				return -1;
	return 0;
}

/* The samples of a step that are computed at the same time. */
struct window {
	struct smalti_task_group **task_groups; /* in the order of their insertion */
	int64_t size, inserted, ended;
	double flops;
};

static int end_sample(struct window *window, struct smalti_error *error)
{
	struct smalti_task_group *task_group = window->task_groups[window->ended++ % window->size];
	struct smalti_task_group_progress progress;
	smalti_task_group_wait(task_group);
	smalti_task_group_progress(task_group, &progress);
	window->flops += progress.done;
	const int status = smalti_task_group_status(task_group, error);
	smalti_task_group_free(task_group);
	return smalti_ranks_agree(status, NULL, error); /* else one rank would insert less than others */
}

static int end_samples(struct window *window, int status, struct smalti_error *error)
{
	while (window->ended < window->inserted)
		if (end_sample(window, status < 0 ? NULL : error) < 0)
			status = -1;
	return status;
}

static struct smalti_task_group *begin_sample(struct window *window, struct lanes *lanes,
					      struct smalti_error *error)
{
	const struct smalti_trainer *trainer = lanes->trainer;
	if (window->inserted - window->ended == window->size &&
	    (end_sample(window, error) < 0 || end_sums(lanes, window->ended, error) < 0))
		return NULL;
	struct smalti_task_group *task_group = smalti_task_group_new(trainer->session, "sample", 0, error);
	if (!task_group) {
		smalti_ranks_give_up(error);
		return NULL;
	}
	smalti_task_group_depends_on(task_group, trainer->task_group);
	window->task_groups[window->inserted++ % window->size] = task_group;
	return task_group;
}

/* The samples of a step that are inserted into the lanes. */
struct work {
	struct smalti_trainer *trainer;
	struct lanes *lanes;
	struct window *window;
	struct smalti_training_sample *samples;
	struct smalti_loss_parts *parts;
};

static int insert_sample(const struct work *w, const struct smalti_step_slot *slot,
			 struct smalti_error *error)
{
	const struct smalti_trainer *trainer = w->trainer;
	const struct smalti_train_options *o = trainer->options;
	struct smalti_sample_work work = smalti_sample_work_of(trainer, w->samples, slot->sample);
	work.gradients = (struct smalti_tile *const *const *)(uintptr_t)of_lane(w->lanes, slot->lane);
	work.add = !slot->begins;
	work.scale = trainer->state.scale.scale / (double)o->batch;
	work.parts = &w->parts[slot->sample];
	struct smalti_task_group *task_group = begin_sample(w->window, w->lanes, error);
	if (!task_group || smalti_sample_insert(trainer, trainer->graph, task_group, &work, error) < 0)
		return -1;
	return 0;
}

/* Inserts the samples of an order, and adds the lanes that are complete behind each turn. */
static int insert_samples(const struct work *w, const struct smalti_step_order *order,
			  struct smalti_error *error)
{
	for (int64_t i = 0; i < order->batch; i++) {
		const struct smalti_step_slot *slot = &order->slot[i];
		if ((slot->begins && begin_lane(w->lanes, slot->lane, error) < 0) ||
		    insert_sample(w, slot, error) < 0)
			return -1;
		if (slot->ends && add_complete(w->lanes, order, i + 1, error) < 0)
			return -1;
	}
	return 0;
}

/* Lets CPUs have the tasks of all samples that are computed at the same time: samples are inserted one after
 * the other. A device needs those of one. */
static void widen_throttle(const struct smalti_trainer *trainer)
{
	struct smalti_session *session = trainer->session;
	const int64_t samples = smalti_min(trainer->plan.micro_batch, session->workers);
	if (session->device_counts.sum == 0)
		smalti_throttle_places(&session->throttle,
				       (int)smalti_max(samples, smalti_session_place_count(session)));
}

/* Computes forward, loss and backward of all samples, with the sum of the gradients in the first lane. */
static int compute_gradient(struct smalti_trainer *trainer, struct lanes *lanes,
			    struct smalti_training_sample *samples, struct smalti_loss_parts *parts,
			    double *flops, struct smalti_error *error)
{
	struct window window = {.size = trainer->plan.micro_batch};
	const struct work work = {trainer, lanes, &window, samples, parts};
	struct smalti_step_order order;
	window.task_groups = smalti_calloc(window.size, sizeof(struct smalti_task_group *), error);
	int status =
	    smalti_step_order_open(&order, &trainer->strategy, trainer->options->batch, lanes->count, error);
	if (!window.task_groups)
		status = -1;
	smalti_trained_begin_step(trainer->graph, trainer->task_group);
	widen_throttle(trainer);
	if (status == 0)
		status = insert_samples(&work, &order, error);
	if (status == 0)
		add_parts(lanes);
	status = end_samples(&window, status, error);
	if (end_sums(lanes, window.inserted, status < 0 ? NULL : error) < 0)
		status = -1;
	smalti_trained_end_step(trainer->graph);
	smalti_step_order_close(&order);
	free(window.task_groups);
	*flops = window.flops;
	return status;
}

/* Measures the gradient, whose loss was scaled: the sum of squares of each parameter's, and the norm of
 * all. */
static int measure_norm(const struct smalti_trainer *trainer, struct smalti_tile *const *gradient,
			double *sums, double *norm, struct smalti_error *error)
{
	const struct smalti_parameters *parameters = trainer->parameters;
	for (int64_t i = 0; i < parameters->count; i++) {
		struct smalti_tile *sum = smalti_tile_new(trainer->task_group, 1, sizeof(*sums));
		smalti_insert(square_sum, trainer->task_group, (.x = gradient[i], .sum = sum),
			      .count = parameters->list[i].count, .factor = 1 / trainer->state.scale.scale);
		smalti_deliver_to_all(trainer->task_group, sum, sizeof(*sums) / sizeof(float), &sums[i]);
		smalti_tile_release(sum);
	}
	smalti_task_group_wait(trainer->task_group);
	if (smalti_ranks_agree(smalti_task_group_status(trainer->task_group, error), NULL, error) < 0)
		return -1;
	*norm = 0;
	for (int64_t i = 0; i < parameters->count; i++)
		*norm += sums[i];
	*norm = sqrt(*norm);
	return 0;
}

static void insert_averages(const struct smalti_trainer *trainer)
{
	const double decay = smalti_average_decay(trainer->options->ema, trainer->state.updates);
	for (int64_t i = 0; i < trainer->averages.count; i++)
		smalti_insert(
		    average, trainer->task_group,
		    (.value = trainer->parameters->list[i].value, .average = trainer->averages.list[i].value),
		    .count = trainer->averages.list[i].count, .decay = decay);
}

static void insert_update(struct smalti_trainer *trainer, struct smalti_tile *const *gradient,
			  struct smalti_step_result *result)
{
	const double clip = smalti_clip_factor(result->norm, trainer->options->optimizer.clip);
	const struct smalti_update update = {.step = ++trainer->state.updates,
					     .rate = result->rate,
					     .gradient_scale = clip / trainer->state.scale.scale};
	smalti_optimizer_update(trainer->optimizer, trainer->task_group, gradient, &update);
	insert_averages(trainer);
}

static double rate_of(const struct smalti_trainer *trainer)
{
	const struct smalti_optimizer_options *o = &trainer->options->optimizer;
	const struct smalti_rate_schedule schedule = {o->schedule, o->warmup, trainer->options->steps};
	return smalti_base_rate(o->rate, o->rule, trainer->options->batch) *
	       smalti_schedule_factor(&schedule, trainer->state.updates);
}

static void sum_up(const struct smalti_trainer *trainer, const struct smalti_training_sample *samples,
		   const struct smalti_loss_parts *parts, struct smalti_step_result *result)
{
	const struct smalti_train_options *o = trainer->options;
	for (int64_t i = 0; i < o->batch; i++) {
		const double weight = smalti_min_snr(samples[i].draws.timestep, o->min_snr);
		result->loss += (weight * parts[i].mse + parts[i].vb) / (double)o->batch;
		result->mse += parts[i].mse / (double)o->batch;
		result->vb += parts[i].vb / (double)o->batch;
	}
}

/* Finishes a step, after its gradients are summed, with or without the update. */
static int finish(struct smalti_trainer *trainer, const struct smalti_training_sample *samples,
		  const struct smalti_loss_parts *parts, struct smalti_tile *const *gradient,
		  struct smalti_step_result *result, struct smalti_error *error)
{
	const bool scales = trainer->options->model.precision == SMALTI_PRECISION_F16;
	SCOPED(free) double *sums = smalti_calloc(trainer->parameters->count, sizeof(*sums), error);
	sum_up(trainer, samples, parts, result);
	if (!sums || measure_norm(trainer, gradient, sums, &result->norm, error) < 0)
		return -1;
	result->rate = rate_of(trainer);
	result->scale = trainer->state.scale.scale;
	result->skipped = scales && !isfinite(result->norm);
	if (!result->skipped && !isfinite(result->loss + result->norm))
		return smalti_step_refuse(trainer, samples, parts, sums, result, error);
	if (!result->skipped)
		insert_update(trainer, gradient, result);
	trainer->state.steps++;
	trainer->state.samples += trainer->options->batch;
	if (!scales)
		return 0;
	return smalti_loss_scale_update(&trainer->state.scale, &trainer->options->loss_scale,
					!result->skipped, error);
}

static int make_step(struct smalti_trainer *trainer, struct smalti_training_sample *samples,
		     struct lanes *lanes, struct smalti_loss_parts *parts, struct smalti_step_result *result,
		     struct smalti_error *error)
{
	int status = compute_gradient(trainer, lanes, samples, parts, &result->flops, error);
	const double computed = smalti_now();
	if (status == 0)
		status = finish(trainer, samples, parts, of_lane(lanes, 0)[0], result, error);
	for (int64_t lane = 0; lane < lanes->count; lane++)
		release_lane(lanes, lane);
	smalti_task_group_wait(trainer->task_group);
	result->update_seconds = smalti_now() - computed;
	if (status == 0)
		status = smalti_task_group_status(trainer->task_group, error);
	return smalti_ranks_agree(status, NULL, error);
}

int smalti_trainer_step(struct smalti_trainer *trainer, struct smalti_training_sample *samples,
			struct smalti_step_result *result, struct smalti_error *error)
{
	const struct smalti_train_options *o = trainer->options;
	const double began = smalti_now();
	struct lanes lanes = {.trainer = trainer,
			      .count = smalti_min(o->lanes, o->batch),
			      .parts = smalti_trained_parts(&trainer->strategy)};
	SCOPED(free) struct smalti_loss_parts *parts = smalti_calloc(o->batch, sizeof(*parts), error);
	lanes.gradients =
	    smalti_calloc(lanes.count, lanes.parts * (int64_t)sizeof(struct smalti_tile **), error);
	lanes.sums = smalti_calloc(lanes.count, sizeof(*lanes.sums), error);
	const struct smalti_step_shape shape = smalti_step_shape_of(trainer, samples, o->batch);
	struct smalti_pool_state pool;
	smalti_pool_watch(trainer->session->pool);
	*result = (struct smalti_step_result){.samples = o->batch};
	for (int64_t i = 0; i < o->batch; i++) {
		result->pixels += samples[i].height * samples[i].width;
		result->caption_tokens += samples[i].tokens;
	}
	const int status = parts && lanes.gradients && lanes.sums &&
				   smalti_step_plan_choose(trainer, &shape, &trainer->plan, error) == 0
			       ? make_step(trainer, samples, &lanes, parts, result, error)
			       : -1;
	free(lanes.gradients);
	free(lanes.sums);
	for (int64_t i = 0; i < o->batch; i++)
		smalti_training_sample_free(&samples[i]);
	smalti_pool_state(trainer->session->pool, &pool);
	result->memory = (struct smalti_step_memory){trainer->plan.tiles, pool.max_used};
	memcpy(result->on_device, trainer->plan.on_device, sizeof(result->on_device));
	result->seconds = smalti_now() - began;
	return status;
}
