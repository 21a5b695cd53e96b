/* SPDX-License-Identifier: Apache-2.0 */
#include "train/sample_count.h"
#include "codelets/codelets.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/session.h"

static int64_t now_at(const struct smalti_sample_count *count, int place)
{
	return count->trainer.session->counting->at[place].bytes.now;
}

static int make_lists(struct smalti_sample_count *count, struct smalti_error *error)
{
	const int parts = smalti_trained_parts(&count->trainer.strategy);
	count->around = smalti_calloc(count->places, sizeof(*count->around), error);
	count->lane = smalti_calloc(count->places, sizeof(*count->lane), error);
	count->sample = smalti_calloc(count->places, sizeof(*count->sample), error);
	count->gradients = smalti_calloc(parts, sizeof(*count->gradients), error);
	for (int part = 0; count->gradients && part < parts; part++)
		if (!(count->gradients[part] = smalti_calloc(count->trainer.parameters->count,
							     sizeof(struct smalti_tile *), error)))
			return -1;
	return count->around && count->lane && count->sample && count->gradients ? 0 : -1;
}

static void insert_value(const struct smalti_sample_count *count, const struct smalti_parameter *parameter,
			 struct smalti_tile *value)
{
	smalti_insert(clear, count->trainer.task_group, (.y = value),
		      .bytes = parameter->count * smalti_dtype_bytes(parameter->dtype));
}

/* Inserts what is there between the steps. */
static int insert_state(struct smalti_sample_count *count, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &count->trainer;
	const struct smalti_parameters *const lists[] = {trainer->base, trainer->parameters};
	for (size_t i = 0; i < COUNT_OF(lists); i++)
		for (int64_t p = 0; lists[i] && p < lists[i]->count; p++)
			insert_value(count, &lists[i]->list[p], lists[i]->list[p].value);
	return smalti_trainer_begin(trainer, error);
}

/* Makes the gradients of a replica's lane, where its parts write them. */
static void make_gradients(struct smalti_sample_count *count, int replica)
{
	const struct smalti_trainer *trainer = &count->trainer;
	const int shards = trainer->strategy.parts[SMALTI_AXIS_SHARD];
	for (int part = 0; part < smalti_trained_parts(&trainer->strategy); part++) {
		smalti_task_group_place(
		    trainer->task_group,
		    smalti_strategy_place(&trainer->strategy, replica, 0, part % shards, part / shards));
		for (int64_t i = 0; i < trainer->parameters->count; i++) {
			const struct smalti_parameter *p = &trainer->parameters->list[i];
			if (!smalti_trained_gives(trainer->graph, part, i))
				continue;
			count->gradients[part][i] = smalti_parameter_tile(p, trainer->task_group);
			insert_value(count, p, count->gradients[part][i]);
		}
	}
	smalti_task_group_place(trainer->task_group, SMALTI_ANYWHERE);
}

static void release_gradients(struct smalti_sample_count *count)
{
	for (int part = 0; part < smalti_trained_parts(&count->trainer.strategy); part++)
		for (int64_t i = 0; i < count->trainer.parameters->count; i++) {
			smalti_tile_release(count->gradients[part][i]);
			count->gradients[part][i] = NULL;
		}
}

static int insert_sample(struct smalti_sample_count *count, int replica,
			 const struct smalti_step_shape *shape, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &count->trainer;
	const struct smalti_training_sample sample = {
	    .height = shape->height, .width = shape->width, .tokens = shape->text_tokens};
	struct smalti_loss_parts parts;
	struct smalti_sample_work work = smalti_sample_work_of(trainer, &sample, 0);
	work.replica = replica;
	work.gradients = (struct smalti_tile *const *const *)(uintptr_t)count->gradients;
	work.parts = &parts;
	if (smalti_sample_insert(trainer, trainer->graph, trainer->task_group, &work, error) < 0)
		return -1;
	return smalti_task_group_status(trainer->task_group, error);
}

/* Counts what is there during a step beside its samples: a sample of each replica has the weights come to its
 * parts. Leaves the gradients of the first replica. */
static int count_around(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
			struct smalti_error *error)
{
	smalti_trained_begin_step(count->trainer.graph, count->trainer.task_group);
	for (int replica = count->trainer.strategy.parts[SMALTI_AXIS_BRANCH] - 1; replica >= 0; replica--) {
		for (int place = 0; place < count->places; place++)
			count->lane[place] = now_at(count, place);
		make_gradients(count, replica);
		for (int place = 0; place < count->places; place++)
			count->lane[place] = now_at(count, place) - count->lane[place];
		if (insert_sample(count, replica, shape, error) < 0)
			return -1;
		if (replica > 0)
			release_gradients(count);
	}
	for (int place = 0; place < count->places; place++)
		count->around[place] = now_at(count, place) - count->lane[place];
	return 0;
}

/* Opens a trainer like another one, in a session that counts. */
static int open_trainer(struct smalti_sample_count *count, const struct smalti_trainer *like,
			struct smalti_error *error)
{
	struct smalti_trainer *trainer = &count->trainer;
	const bool devices = like->strategy.count > 0 && smalti_ranks_count() == 1 && count->places > 1;
	struct smalti_session *session = smalti_session_open_counting(count->places, devices, error);
	if (!session || smalti_trainer_open(trainer, session, like->options, &like->config, error) < 0)
		return -1;
	const struct smalti_null_caption null_caption = {NULL, like->null_tokens,
							 like->config.caption_channels};
	const struct smalti_shard_schema schema = {.dtype = like->features,
						   .scaling_factor = like->scaling_factor};
	smalti_trainer_set_data(trainer, &schema, &null_caption);
	return 0;
}

int smalti_sample_count_open(struct smalti_sample_count *count, const struct smalti_trainer *trainer,
			     const struct smalti_step_shape *shape, struct smalti_error *error)
{
	*count = (struct smalti_sample_count){.places = smalti_session_place_count(trainer->session)};
	if (open_trainer(count, trainer, error) < 0 || make_lists(count, error) < 0 ||
	    insert_state(count, error) < 0 || count_around(count, shape, error) < 0)
		return -1;
	return 0;
}

int smalti_sample_count_plan(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
			     const struct smalti_step_plan *plan, struct smalti_error *error)
{
	struct smalti_counting *counting = count->trainer.session->counting;
	count->trainer.plan = *plan;
	smalti_counting_mark(counting);
	if (insert_sample(count, 0, shape, error) < 0)
		return -1;
	for (int place = 0; place < count->places; place++)
		count->sample[place] = counting->at[place].bytes.max;
	return 0;
}

int smalti_sample_count_place(const struct smalti_sample_count *count, int replica, int place)
{
	const struct smalti_strategy *strategy = &count->trainer.strategy;
	const int before = replica * smalti_trained_parts(strategy); /* parts take the places in turn */
	for (int i = 0; i < strategy->count; i++)
		if (strategy->place[(i + before) % strategy->count] == place)
			return strategy->place[i];
	return place;
}

void smalti_sample_count_close(struct smalti_sample_count *count)
{
	struct smalti_trainer *trainer = &count->trainer;
	const int parts = trainer->parameters ? smalti_trained_parts(&trainer->strategy) : 0;
	for (int part = 0; count->gradients && part < parts; part++) {
		for (int64_t i = 0; count->gradients[part] && i < trainer->parameters->count; i++)
			smalti_tile_release(count->gradients[part][i]);
		free(count->gradients[part]);
	}
	free(count->gradients);
	free(count->around);
	free(count->lane);
	free(count->sample);
	if (trainer->graph)
		smalti_trained_end_step(trainer->graph);
	struct smalti_session *session = trainer->session;
	smalti_trainer_close(trainer);
	smalti_session_close(session, NULL);
}
