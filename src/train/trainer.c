/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"
#include "codelets/codelets.h"
#include "graphs/pixart/train.h"
#include "jobs/precision.h"
#include "ranks/ranks.h"

static int read_strategy(struct smalti_trainer *trainer, struct smalti_error *error)
{
	const struct smalti_train_options *o = trainer->options;
	const int places = smalti_session_place_count(trainer->session);
	const bool given = o->shares || smalti_ranks_count() > 1; /* rank 0 is a place like the others */
	SCOPED(free) double *shares = smalti_calloc(places, sizeof(*shares), error);
	trainer->strategy = smalti_strategy_none;
	if (!o->strategy)
		return shares ? 0 : -1;
	for (int i = 0; shares && i < places; i++)
		shares[i] = 1;
	if (!shares || (o->shares && smalti_shares_read(o->shares, places, shares, error) < 0) ||
	    smalti_strategy_read(&trainer->strategy, o->strategy, given ? shares : NULL, places, error) < 0)
		return -1;
	if (trainer->strategy.parts[SMALTI_AXIS_SHARD] > 1 && o->optimizer.kind == SMALTI_OPTIMIZER_CAME)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "strategy \"%s\": the optimizer \"came\" takes the means of whole matrices, "
		    "which shards do not have: train with --optimizer adamw, or spread by data, "
		    "patch or ring",
		    o->strategy);
	if (trainer->strategy.parts[SMALTI_AXIS_SHARD] > 1 && o->lora.rank)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "strategy \"%s\": adapters are not cut: spread by data, patch or ring",
				   o->strategy);
	return smalti_trained_check(&trainer->strategy, error);
}

/* Returns the length of what the names of a block's layer have in common, as in
 * "transformer_blocks.3.attn1."; 0 outside of blocks. */
static size_t layer_prefix(const char *name)
{
	int length = 0;
	sscanf(name, "transformer_blocks.%*d.%*[^.].%n", &length);
	return (size_t)length;
}

/* Gives each parameter a place where it is updated. Each layer of a block goes to the part that has the
 * fewest parameters so far, so that all send and receive at the same time; what is outside of blocks goes to
 * the first one. Of shards' parameters each shard has its own. */
static int own(const struct smalti_trainer *trainer, const struct smalti_parameters *parameters,
	       struct smalti_error *error)
{
	const struct smalti_strategy *s = &trainer->strategy;
	const int ranks = s->parts[SMALTI_AXIS_RANK], parts = s->parts[SMALTI_AXIS_BRANCH] * ranks;
	SCOPED(free) int64_t *owned = smalti_calloc(parts, sizeof(*owned), error);
	const char *layer = "";
	size_t length = 0;
	int part = 0;
	for (int64_t i = 0; owned && i < parameters->count; i++) {
		const struct smalti_parameter *p = &parameters->list[i];
		const char *name = smalti_parameter_module(p->name);
		if (length == 0 || strncmp(name, layer, length) != 0) {
			layer = name;
			length = layer_prefix(name);
			part = 0;
			for (int other = 1; length && other < parts; other++)
				if (owned[other] < owned[part])
					part = other;
		}
		owned[part] += p->count;
		if (p->value)
			p->value->owner =
			    smalti_strategy_place(s, part / ranks, 0, p->cut.shard, part % ranks);
	}
	return owned ? 0 : -1;
}

/* Opens the averages: tiles of the parameters' shapes under their names. */
static int open_averages(struct smalti_trainer *trainer, struct smalti_error *error)
{
	struct smalti_parameters *averages = &trainer->averages;
	const int64_t count = trainer->parameters->count;
	averages->list = smalti_calloc(count, sizeof(*averages->list), error);
	if (!averages->list)
		return -1;
	averages->count = count;
	averages->architecture = trainer->parameters->architecture;
	averages->base = trainer->base;
	averages->scale = trainer->parameters->scale;
	averages->strategy = trainer->parameters->strategy;
	averages->shards = trainer->parameters->shards;
	for (int64_t i = 0; i < count; i++) {
		averages->list[i] = trainer->parameters->list[i];
		averages->list[i].value = smalti_parameter_tile(&averages->list[i], trainer->task_group);
	}
	if (own(trainer, averages, error) < 0)
		return -1;
	trainer->average_graph = smalti_trained_new(
	    &trainer->config, averages, smalti_precision_dtype(trainer->options->model.precision), error);
	return trainer->average_graph ? 0 : -1;
}

struct smalti_lora_shape smalti_lora_shape_of(const struct smalti_train_options *options)
{
	const struct smalti_lora_training *lora = &options->lora;
	return (struct smalti_lora_shape){
	    .rank = lora->rank,
	    .alpha = lora->alpha > 0 ? lora->alpha : (double)lora->rank,
	    .targets = lora->targets,
	};
}

static int make_parameters(struct smalti_trainer *trainer, struct smalti_error *error)
{
	const struct smalti_lora_shape shape = smalti_lora_shape_of(trainer->options);
	struct smalti_parameters *all = smalti_parameters_new(trainer->task_group, &smalti_dit_trained,
							      &trainer->config, &trainer->strategy, error);
	if (!all)
		return -1;
	if (shape.rank == 0) {
		trainer->parameters = all;
		return own(trainer, all, error);
	}
	trainer->base = all;
	if (own(trainer, all, error) < 0)
		return -1;
	trainer->parameters = smalti_adapter_parameters_new(trainer->task_group, all, &shape, error);
	if (!trainer->parameters)
		return -1;
	return own(trainer, trainer->parameters, error);
}

static int make_graph(struct smalti_trainer *trainer, struct smalti_error *error)
{
	if (make_parameters(trainer, error) < 0)
		return -1;
	trainer->graph = smalti_trained_new(&trainer->config, trainer->parameters,
					    smalti_precision_dtype(trainer->options->model.precision), error);
	if (!trainer->graph)
		return -1;
	smalti_trained_store_base(trainer->graph, trainer->task_group);
	return 0;
}

int smalti_trainer_open(struct smalti_trainer *trainer, struct smalti_session *session,
			const struct smalti_train_options *options,
			const struct smalti_transformer_config *config, struct smalti_error *error)
{
	*trainer = (struct smalti_trainer){.session = session, .options = options, .config = *config};
	trainer->state.scale.scale =
	    options->model.precision == SMALTI_PRECISION_F16 ? options->loss_scale.initial : 1;
	trainer->task_group = smalti_task_group_new(session, "training", INT64_MAX, error);
	if (!trainer->task_group || read_strategy(trainer, error) < 0 || make_graph(trainer, error) < 0)
		return -1;
	trainer->optimizer =
	    smalti_optimizer_new(trainer->task_group, trainer->parameters, &options->optimizer, error);
	if (!trainer->optimizer)
		return -1;
	return options->ema > 0 ? open_averages(trainer, error) : 0;
}

void smalti_trainer_set_data(struct smalti_trainer *trainer, const struct smalti_shard_schema *schema,
			     const struct smalti_null_caption *null_caption)
{
	const int64_t bytes = null_caption->width * (int64_t)sizeof(float);
	trainer->features = schema->dtype;
	trainer->scaling_factor = (float)schema->scaling_factor;
	trainer->null_tokens = null_caption->tokens;
	trainer->null_caption =
	    null_caption->values
		? smalti_tile_upload(trainer->task_group, null_caption->tokens, bytes, null_caption->values)
		: smalti_tile_new(trainer->task_group, null_caption->tokens, bytes);
}

int smalti_trainer_begin(struct smalti_trainer *trainer, struct smalti_error *error)
{
	for (int64_t i = 0; i < trainer->averages.count; i++) {
		const struct smalti_parameter *average = &trainer->averages.list[i];
		smalti_insert(copy, trainer->task_group,
			      (.x = trainer->parameters->list[i].value, .y = average->value),
			      .bytes = average->count * (int64_t)sizeof(float));
	}
	smalti_task_group_wait(trainer->task_group);
	return smalti_task_group_status(trainer->task_group, error);
}

void smalti_trainer_close(struct smalti_trainer *trainer)
{
	if (trainer->task_group)
		smalti_task_group_wait(trainer->task_group);
	smalti_trained_free(trainer->average_graph);
	smalti_trained_free(trainer->graph);
	for (int64_t i = 0; i < trainer->averages.count; i++)
		smalti_tile_release(trainer->averages.list[i].value);
	free(trainer->averages.list);
	smalti_optimizer_free(trainer->optimizer);
	smalti_parameters_free(trainer->parameters);
	smalti_parameters_free(trainer->base);
	smalti_tile_release(trainer->null_caption);
	smalti_task_group_free(trainer->task_group);
	smalti_strategy_free(&trainer->strategy);
}
