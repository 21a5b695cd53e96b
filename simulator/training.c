/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/config.h"
#include "codelets/codelets.h"
#include "jobs/model.h"
#include "simulator/case.h"
#include "train/saved.h"
#include "train/trainer.h"

enum { FACTOR = 8, TIMESTEP = 500, BYTES = 2 /* of a stored value */ };

/* Steps of training, with samples of one size. */
struct training {
	struct smalti_case *c;
	struct smalti_train_options options;
	struct smalti_transformer_config config;
	struct smalti_trainer trainer;
	int64_t height, width; /* of the latents */
	struct smalti_training_sample *samples;
};

static int read_config(struct training *t, struct smalti_error *error)
{
	const char *directory = t->c->directory ? t->c->directory : smalti_embedded_model(error);
	SCOPED(free)
	char *path = directory ? smalti_format(error, "%s/transformer/config.json", directory) : NULL;
	if (!path || smalti_transformer_config_read(path, &t->config, error) < 0)
		return -1;
	const struct smalti_request *request = &t->c->options->request;
	const int64_t side = FACTOR * t->config.patch_size;
	t->width = request->width ? request->width / FACTOR : t->config.sample_size;
	t->height = request->width ? request->height / FACTOR : t->config.sample_size;
	if (request->width % side == 0 && request->height % side == 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "--size: expected multiples of %" PRId64 " for training, found %" PRId64
			   "x%" PRId64,
			   side, request->width, request->height);
}

static void set_options(struct training *t)
{
	const struct smalti_simulate_options *o = t->c->options;
	struct smalti_train_options *to = &t->options;
	smalti_train_defaults(to);
	to->model.precision = (enum smalti_precision)o->precision;
	to->batch = o->training.batch;
	to->lanes = o->training.lanes;
	to->micro = o->training.micro;
	to->recomputation = (enum smalti_recomputation)o->training.recomputation;
	to->optimizer.kind = (enum smalti_optimizer_kind)o->training.optimizer;
	to->lora.rank = o->training.lora_rank;
	if (o->training.lora_targets)
		to->lora.targets = o->training.lora_targets;
	to->strategy = o->request.strategy;
	to->shares = o->request.shares;
	to->tile_tokens = o->request.tile_tokens;
	to->steps = o->request.steps;
}

/* Inserts tasks that give the values of these tiles, for tasks read none that has none. */
static void fill(struct smalti_task_group *task_group, const struct smalti_parameter *list, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		smalti_insert(clear, task_group, (.y = list[i].value),
			      .bytes = list[i].count * smalti_dtype_bytes(list[i].dtype));
}

static int open_trainer(struct training *t, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &t->trainer;
	const struct smalti_null_caption null_caption = {.tokens = 1, .width = t->config.caption_channels};
	const struct smalti_shard_schema schema = {.dtype = SMALTI_F16, .scaling_factor = 1};
	const int64_t tokens = t->height / t->config.patch_size * (t->width / t->config.patch_size);
	smalti_case_expect(t->c, t->config.width, (double)tokens);
	if (smalti_trainer_open(trainer, t->c->session, &t->options, &t->config, error) < 0)
		return -1;
	smalti_trainer_set_data(trainer, &schema, &null_caption);
	smalti_insert(clear, trainer->task_group, (.y = trainer->null_caption),
		      .bytes = null_caption.width * (int64_t)sizeof(float));
	fill(trainer->task_group, trainer->parameters->list, trainer->parameters->count);
	if (trainer->base)
		fill(trainer->task_group, trainer->base->list, trainer->base->count);
	return smalti_trainer_begin(trainer, error);
}

static int64_t caption_tokens(const struct training *t)
{
	const int64_t given = t->c->options->caption_tokens;
	return given ? given : SMALTI_CAPTION_TOKENS;
}

/* Returns the bytes of a sample's stored values. @{ */
static int64_t moments_bytes(const struct training *t)
{
	return 2 * t->config.in_channels * t->height * t->width * BYTES;
}

static int64_t caption_bytes(const struct training *t)
{
	return caption_tokens(t) * t->config.caption_channels * BYTES;
}
/* @} */

/* Makes a batch of samples without values, which nothing reads. */
static int make_samples(const struct training *t, struct smalti_error *error)
{
	struct smalti_training_sample *samples = t->samples;
	const int64_t moments = moments_bytes(t), caption = caption_bytes(t);
	for (int64_t i = 0; i < t->options.batch; i++) {
		char *memory = smalti_calloc(moments + caption, 1, error);
		if (!memory) {
			while (i > 0)
				smalti_training_sample_free(&samples[--i]);
			return -1;
		}
		samples[i] = (struct smalti_training_sample){.index = i,
							     .height = t->height,
							     .width = t->width,
							     .ratio = (double)t->height / (double)t->width,
							     .original_height = t->height * FACTOR,
							     .original_width = t->width * FACTOR,
							     .draws.timestep = TIMESTEP,
							     .tokens = caption_tokens(t),
							     .moments = memory,
							     .caption = memory + moments};
	}
	return 0;
}

static int make_step(struct training *t, struct smalti_case_outcome *outcome, struct smalti_error *error)
{
	struct smalti_step_result result;
	const double began = smalti_simulation_now();
	if (make_samples(t, error) < 0 || smalti_trainer_step(&t->trainer, t->samples, &result, error) < 0)
		return -1;
	outcome->step = smalti_simulation_now() - began;
	return 0;
}

static void fetch(struct smalti_task_group *task_group, const struct smalti_parameter *list, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		smalti_insert(deliver, task_group, (.x = list[i].value), .count = list[i].count);
		smalti_task_group_wait(task_group);
	}
}

/* Brings each tensor to main memory, as a checkpoint is written. */
static int fetch_all(struct training *t, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = &t->trainer;
	fetch(trainer->task_group, trainer->parameters->list, trainer->parameters->count);
	fetch(trainer->task_group, trainer->averages.list, trainer->averages.count);
	fetch(trainer->task_group, trainer->optimizer->state, trainer->optimizer->state_count);
	return smalti_task_group_status(trainer->task_group, error);
}

/* Simulates the second checkpoint; the first one also makes room in main memory. The time of its files, and
 * of a batch, which is read while a step is computed, is that of their bytes. */
static int use_storage(struct training *t, struct smalti_case_outcome *outcome, struct smalti_error *error)
{
	const struct smalti_simulated_machine *machine = &t->c->machine;
	const double batch = (double)(t->options.batch * (moments_bytes(t) + caption_bytes(t))),
		     step = outcome->step;
	if (machine->storage_write == 0)
		return 0;
	if (fetch_all(t, error) < 0 || make_step(t, outcome, error) < 0)
		return -1;
	outcome->step = step;
	const double began = smalti_simulation_now();
	if (fetch_all(t, error) < 0)
		return -1;
	outcome->checkpoint =
	    smalti_simulation_now() - began + (double)outcome->checkpoint_bytes / machine->storage_write;
	outcome->reading = batch / machine->storage_read;
	return 0;
}

static int train(struct training *t, struct smalti_case_outcome *outcome, struct smalti_error *error)
{
	int status = t->samples ? open_trainer(t, error) : -1;
	for (int64_t step = 0; step < t->options.steps && status == 0; step++)
		status = make_step(t, outcome, error);
	return status;
}

int smalti_case_training(struct smalti_case *c, struct smalti_error *error)
{
	struct training t = {.c = c};
	struct smalti_case_outcome outcome = {.strategy = c->options->request.strategy};
	if (read_config(&t, error) < 0)
		return -1;
	set_options(&t);
	t.samples = smalti_calloc(t.options.batch, sizeof(*t.samples), error);
	int status = train(&t, &outcome, error);
	struct smalti_simulation *simulation = status == 0 ? smalti_simulation_take(c->session, error) : NULL;
	outcome.simulation = simulation;
	if (simulation)
		outcome.checkpoint_bytes = smalti_saved_bytes(&t.trainer);
	status =
	    simulation && use_storage(&t, &outcome, error) == 0 ? smalti_case_print(c, &outcome, error) : -1;
	smalti_simulation_free(simulation);
	smalti_trainer_close(&t.trainer);
	free(t.samples);
	return status;
}
