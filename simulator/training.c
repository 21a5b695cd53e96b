/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/config.h"
#include "codelets/codelets.h"
#include "jobs/model.h"
#include "simulator/case.h"
#include "train/trainer.h"

enum { FACTOR = 8, TIMESTEP = 500, BYTES = 2 /* of a stored value */ };

/* Steps of training, with samples of one size. */
struct training {
	struct smalti_case *c;
	struct smalti_train_options options;
	struct smalti_transformer_config config;
	struct smalti_trainer trainer;
	int64_t height, width; /* of the latents */
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
			      .bytes = list[i].count * (int64_t)sizeof(float));
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
	return smalti_trainer_begin(trainer, error);
}

/* Makes a batch of samples without values, which nothing reads. */
static int make_samples(const struct training *t, struct smalti_training_sample *samples,
			struct smalti_error *error)
{
	const int64_t moments = 2 * t->config.in_channels * t->height * t->width * BYTES,
		      given = t->c->options->caption_tokens, tokens = given ? given : SMALTI_CAPTION_TOKENS,
		      caption = tokens * t->config.caption_channels * BYTES;
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
							     .tokens = tokens,
							     .moments = memory,
							     .caption = memory + moments};
	}
	return 0;
}

static int make_step(struct training *t, struct smalti_training_sample *samples,
		     struct smalti_case_outcome *outcome, struct smalti_error *error)
{
	struct smalti_step_result result;
	const double began = smalti_simulation_now();
	if (make_samples(t, samples, error) < 0 ||
	    smalti_trainer_step(&t->trainer, samples, &result, error) < 0)
		return -1;
	outcome->step = smalti_simulation_now() - began;
	return 0;
}

static int train(struct training *t, struct smalti_case_outcome *outcome, struct smalti_error *error)
{
	SCOPED(free)
	struct smalti_training_sample *samples = smalti_calloc(t->options.batch, sizeof(*samples), error);
	int status = samples ? open_trainer(t, error) : -1;
	for (int64_t step = 0; step < t->options.steps && status == 0; step++)
		status = make_step(t, samples, outcome, error);
	return status;
}

int smalti_case_training(struct smalti_case *c, struct smalti_error *error)
{
	struct training t = {.c = c};
	struct smalti_case_outcome outcome = {.strategy = c->options->request.strategy};
	if (read_config(&t, error) < 0)
		return -1;
	set_options(&t);
	int status = train(&t, &outcome, error);
	struct smalti_simulation *simulation = status == 0 ? smalti_simulation_take(c->session, error) : NULL;
	outcome.simulation = simulation;
	status = simulation ? smalti_case_print(c, &outcome, error) : -1;
	smalti_simulation_free(simulation);
	smalti_trainer_close(&t.trainer);
	return status;
}
