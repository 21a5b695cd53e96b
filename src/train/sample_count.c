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

static int parts_of(const struct smalti_sample_count *count)
{
	return smalti_trained_parts(&count->trainer.strategy);
}

static int replicas_of(const struct smalti_sample_count *count)
{
	return count->trainer.strategy.parts[SMALTI_AXIS_BRANCH];
}

/* Returns the gradients of each part of a replica. */
static struct smalti_tile ***gradients_of(const struct smalti_sample_count *count, int replica)
{
	return count->gradients + replica * parts_of(count);
}

static int make_lists(struct smalti_sample_count *count, struct smalti_error *error)
{
	int64_t **const lists[] = {&count->around, &count->come, &count->lane, &count->sample, &count->first};
	const int parts = replicas_of(count) * parts_of(count);
	for (size_t i = 0; i < COUNT_OF(lists); i++)
		if (!(*lists[i] = smalti_calloc(count->places, sizeof(**lists[i]), error)))
			return -1;
	count->gradients = smalti_calloc(parts, sizeof(*count->gradients), error);
	for (int part = 0; count->gradients && part < parts; part++)
		if (!(count->gradients[part] = smalti_calloc(count->trainer.parameters->count,
							     sizeof(struct smalti_tile *), error)))
			return -1;
	return count->gradients ? 0 : -1;
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

/* Makes the gradients of a lane of a replica; `written`: where its parts write them. */
static void make_gradients(const struct smalti_sample_count *count, int replica, bool written)
{
	const struct smalti_trainer *trainer = &count->trainer;
	const int shards = trainer->strategy.parts[SMALTI_AXIS_SHARD];
	for (int part = 0; part < parts_of(count); part++) {
		smalti_task_group_place(
		    trainer->task_group,
		    smalti_strategy_place(&trainer->strategy, replica, 0, part % shards, part / shards));
		for (int64_t i = 0; i < trainer->parameters->count; i++) {
			const struct smalti_parameter *p = &trainer->parameters->list[i];
			if (!smalti_trained_gives(trainer->graph, part, i))
				continue;
			struct smalti_tile *tile = smalti_parameter_tile(p, trainer->task_group);
			gradients_of(count, replica)[part][i] = tile;
			if (written)
				insert_value(count, p, tile);
		}
	}
	smalti_task_group_place(trainer->task_group, SMALTI_ANYWHERE);
}

static void release_gradients(const struct smalti_sample_count *count, int replica)
{
	for (int part = 0; part < parts_of(count); part++)
		for (int64_t i = 0; i < count->trainer.parameters->count; i++) {
			struct smalti_tile **tile = &gradients_of(count, replica)[part][i];
			smalti_tile_release(*tile);
			*tile = NULL;
		}
}

/* Inserts a sample of a replica, which adds to the gradients or writes them. */
static int insert_sample(struct smalti_sample_count *count, int replica, bool adds,
			 const struct smalti_step_shape *shape, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &count->trainer;
	const struct smalti_training_sample sample = {
	    .height = shape->height, .width = shape->width, .tokens = shape->text_tokens};
	struct smalti_loss_parts parts;
	struct smalti_sample_work work = smalti_sample_work_of(trainer, &sample, 0);
	work.replica = replica;
	work.gradients = (struct smalti_tile *const *const *)(uintptr_t)gradients_of(count, replica);
	work.add = adds;
	work.parts = &parts;
	if (smalti_sample_insert(trainer, trainer->graph, trainer->task_group, &work, error) < 0)
		return -1;
	return smalti_task_group_status(trainer->task_group, error);
}

/* Counts the sums of a lane of a replica, and has the weights come to its parts by a sample. */
static int begin_replica(struct smalti_sample_count *count, int replica,
			 const struct smalti_step_shape *shape, struct smalti_error *error)
{
	for (int place = 0; place < count->places; place++)
		count->lane[place] = now_at(count, place);
	make_gradients(count, replica, true);
	for (int place = 0; place < count->places; place++) {
		count->lane[place] = now_at(count, place) - count->lane[place];
		count->around[place] -= count->lane[place];
	}
	return insert_sample(count, replica, true, shape, error);
}

/* Adds the gradients of replicas in a tree, and those of the first one's parts, as a step does. */
static void add_gradients(struct smalti_sample_count *count)
{
	const struct smalti_trainer *trainer = &count->trainer;
	const int replicas = replicas_of(count), parts = parts_of(count);
	for (int s = 1; s < replicas; s *= 2)
		for (int i = 0; i + s < replicas; i += 2 * s)
			for (int part = 0; part < parts; part++)
				smalti_gradients_add(trainer->parameters, trainer->task_group,
						     gradients_of(count, i + s)[part],
						     gradients_of(count, i)[part]);
	for (int part = 1; part < parts; part++)
		smalti_gradients_add(trainer->parameters, trainer->task_group, gradients_of(count, 0)[part],
				     gradients_of(count, 0)[0]);
}

/* Counts a step but for its samples. */
static int count_around(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
			struct smalti_error *error)
{
	smalti_trained_begin_step(count->trainer.graph, count->trainer.task_group);
	for (int replica = replicas_of(count) - 1; replica >= 0; replica--)
		if (begin_replica(count, replica, shape, error) < 0)
			return -1;
	for (int place = 0; place < count->places; place++) {
		count->around[place] += now_at(count, place);
		count->come[place] = -now_at(count, place);
	}
	add_gradients(count);
	for (int place = 0; place < count->places; place++)
		count->come[place] += now_at(count, place);
	for (int replica = 0; replica < replicas_of(count); replica++)
		release_gradients(count, replica);
	return smalti_task_group_status(count->trainer.task_group, error);
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
	float values[] = {0}; /* not read */
	const struct smalti_null_caption null_caption = {values, like->null_tokens,
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
	for (int adds = 0; adds < 2; adds++) {
		int64_t *bytes = adds ? count->sample : count->first;
		if (!adds)
			smalti_counting_mark(counting);
		make_gradients(count, 0, adds);
		if (adds)
			smalti_counting_mark(counting);
		const int status = insert_sample(count, 0, adds, shape, error);
		release_gradients(count, 0);
		if (status < 0)
			return -1;
		for (int place = 0; place < count->places; place++)
			bytes[place] = counting->at[place].bytes.max;
	}
	return 0;
}

int smalti_sample_count_place(const struct smalti_sample_count *count, int replica, int place)
{
	const struct smalti_strategy *strategy = &count->trainer.strategy;
	const int before = replica * parts_of(count); /* parts take the places in turn */
	for (int i = 0; i < strategy->count; i++)
		if (strategy->place[(i + before) % strategy->count] == place)
			return strategy->place[i];
	return place;
}

void smalti_sample_count_close(struct smalti_sample_count *count)
{
	struct smalti_trainer *trainer = &count->trainer;
	struct smalti_session *session = trainer->session;
	for (int part = 0; count->gradients && part < replicas_of(count) * parts_of(count); part++)
		free(count->gradients[part]);
	free(count->gradients);
	free(count->around);
	free(count->come);
	free(count->lane);
	free(count->sample);
	free(count->first);
	if (trainer->graph)
		smalti_trained_end_step(trainer->graph);
	smalti_trainer_close(trainer);
	smalti_session_close(session, NULL);
}
