/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/trained_pass.h"

int smalti_trained_check(const struct smalti_strategy *strategy, struct smalti_error *error)
{
	const int *parts = strategy->parts;
	const bool branches = parts[SMALTI_AXIS_BRANCH] == 1 || strategy->replicas;
	const bool shards =
	    parts[SMALTI_AXIS_SHARD] == 1 || (strategy->tensor && parts[SMALTI_AXIS_RANK] == 1);
	if (smalti_strategy_is_exact(strategy) && shards && branches)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "strategy: training is spread by data, patch, ring and tensor, and by hybrids of "
			   "data with one of the others");
}

struct smalti_trained *smalti_trained_new(const struct smalti_transformer_config *config,
					  const struct smalti_parameters *parameters,
					  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_trained *trained = smalti_calloc(1, sizeof(*trained), error);
	struct smalti_weights *weights =
	    trained ? smalti_weights_of_parameters(parameters, compute, error) : NULL;
	if (weights) {
		*trained = (struct smalti_trained){parameters->architecture, parameters, NULL, compute};
		trained->denoiser =
		    trained->functions->make(weights, config, parameters->strategy, compute, error);
	}
	if (weights && trained->denoiser)
		return trained;
	smalti_trained_free(trained);
	return NULL;
}

void smalti_trained_free(struct smalti_trained *trained)
{
	if (trained)
		smalti_denoiser_free(trained->denoiser);
	free(trained);
}

void smalti_trained_store_base(struct smalti_trained *trained, struct smalti_task_group *task_group)
{
	smalti_weights_store_base(trained->denoiser->weights, task_group);
}

bool smalti_trained_gives(const struct smalti_trained *trained, int part, int64_t index)
{
	const struct smalti_parameter *p = &trained->parameters->list[index];
	if (p->cut.is_part)
		return p->cut.shard == part % trained->parameters->shards;
	return part == 0 || !trained->functions->is_condition(p->name);
}

void smalti_trained_begin_step(struct smalti_trained *trained, struct smalti_task_group *task_group)
{
	smalti_weights_begin_step(trained->denoiser->weights, task_group);
}

void smalti_trained_end_step(struct smalti_trained *trained)
{
	smalti_weights_end_step(trained->denoiser->weights);
}

/* Counts the largest product, of a band's rows or the caption's, with operands that may be rounded. Packing
 * takes the same for all models. */
int64_t smalti_trained_scratch(const struct smalti_trained *trained,
			       const struct smalti_trained_sample *sample)
{
	enum { PACKED = 1 << 20 };
	const struct smalti_partition *bands = &sample->tokens->partition;
	const int64_t columns = trained->functions->widest(trained->denoiser);
	int64_t rows = sample->text_tokens;
	for (int64_t band = 0; band < bands->bands; band++)
		rows = smalti_max(rows, smalti_partition_rows(bands, band));
	const int64_t weight = trained->compute == SMALTI_F32 ? 0 : trained->denoiser->width * columns;
	return PACKED + (2 * rows * columns + weight) * (int64_t)sizeof(float);
}

/* A pass */

static void open_tape(struct smalti_trained_pass *pass, struct smalti_task_group *task_group)
{
	const struct smalti_strategy *strategy = pass->sample.tokens->strategy;
	const int shards = strategy->parts[SMALTI_AXIS_SHARD], parts = smalti_trained_parts(strategy);
	for (int i = 0; i < parts; i++)
		pass->place[i] =
		    smalti_strategy_place(strategy, pass->sample.replica, 0, i % shards, i / shards);
	pass->tape = (struct smalti_tape){.task_group = task_group,
					  .records = true,
					  .bounded = pass->sample.bounded,
					  .parts = parts,
					  .place = pass->place,
					  .open = -1};
}

static int allocate(struct smalti_trained_pass *pass, struct smalti_error *error)
{
	const int64_t layers = pass->trained->denoiser->layers, bands = pass->sample.tokens->partition.bands;
	pass->place =
	    smalti_calloc(smalti_trained_parts(pass->sample.tokens->strategy), sizeof(*pass->place), error);
	pass->patches = smalti_calloc(bands, sizeof(*pass->patches), error);
	pass->z = smalti_calloc((layers + 1) * bands, sizeof(*pass->z), error);
	pass->v = smalti_calloc(bands, sizeof(*pass->v), error);
	pass->mark = smalti_calloc(layers + 1, sizeof(*pass->mark), error);
	return pass->place && pass->patches && pass->z && pass->v && pass->mark ? 0 : -1;
}

static struct smalti_trained_pass *new_pass(struct smalti_trained *trained,
					    struct smalti_task_group *task_group,
					    const struct smalti_trained_sample *sample)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_trained_pass *pass = smalti_calloc(1, sizeof(*pass), &error);
	if (pass) {
		*pass = (struct smalti_trained_pass){.trained = trained, .sample = *sample};
		if (allocate(pass, &error) == 0) {
			open_tape(pass, task_group);
			if (trained->functions->open(pass, &error) == 0)
				return pass;
		}
	}
	smalti_task_group_break(task_group, &error);
	smalti_trained_drop(pass);
	return NULL;
}

void smalti_trained_go_home(struct smalti_trained_pass *pass, int64_t band)
{
	const struct smalti_tokens *tokens = pass->sample.tokens;
	const struct smalti_token_band *home = &tokens->band[band];
	smalti_tape_go(&pass->tape, home->rank * tokens->strategy->parts[SMALTI_AXIS_SHARD] + home->shard);
}

/* Removes place and barrier from tasks inserted later. */
static void leave(const struct smalti_trained_pass *pass)
{
	smalti_task_group_place(pass->tape.task_group, SMALTI_ANYWHERE);
	smalti_task_group_behind(pass->tape.task_group, NULL);
}

static bool goes_on(const struct smalti_trained_pass *pass)
{
	return !smalti_task_group_broken(pass->tape.task_group);
}

/* Inserts a layer, and writes what is behind it to z; `last`: without its tiles. */
static void insert_layer(struct smalti_trained_pass *pass, int64_t layer, bool last, struct smalti_value *z)
{
	const int64_t bands = pass->sample.tokens->partition.bands;
	memcpy(z, smalti_trained_stream(pass, layer), (size_t)bands * sizeof(*z));
	pass->mark[layer] = smalti_tape_mark(&pass->tape);
	pass->trained->functions->layer(pass, layer, last, z);
}

struct smalti_trained_pass *smalti_trained_pass_forward(struct smalti_trained *trained,
							struct smalti_task_group *task_group,
							const struct smalti_trained_sample *sample,
							bool keeps_all, struct smalti_tile **out)
{
	const int64_t layers = trained->denoiser->layers;
	*out = NULL;
	struct smalti_trained_pass *pass = new_pass(trained, task_group, sample);
	if (!pass)
		return NULL;
	pass->tape.keeps_all = keeps_all;
	trained->functions->begin(pass);
	for (int64_t i = 0; i < layers && goes_on(pass); i++) {
		smalti_tape_barrier(&pass->tape);
		insert_layer(pass, i, false, smalti_trained_stream(pass, i + 1));
		if (i < sample->recomputed)
			smalti_tape_drop(&pass->tape, pass->mark[i]);
	}
	smalti_tape_barrier(&pass->tape);
	pass->mark[layers] = smalti_tape_mark(&pass->tape);
	if (goes_on(pass)) {
		trained->functions->end(pass);
		*out = smalti_trained_planes(pass);
	}
	leave(pass);
	return pass;
}

struct smalti_trained_pass *smalti_trained_forward(struct smalti_trained *trained,
						   struct smalti_task_group *task_group,
						   const struct smalti_trained_sample *sample,
						   struct smalti_tile **out)
{
	return smalti_trained_pass_forward(trained, task_group, sample, false, out);
}

/* Inserts a layer once more. The gradients behind it become those of its new results. */
static void insert_layer_again(struct smalti_trained_pass *pass, int64_t layer)
{
	struct smalti_value *behind = smalti_trained_stream(pass, layer + 1);
	insert_layer(pass, layer, true, pass->v);
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands && goes_on(pass); b++) {
		smalti_trained_go_home(pass, b);
		smalti_tape_hand_over(&pass->tape, behind[b], pass->v[b]);
	}
	smalti_tape_barrier(&pass->tape);
}

static void layer_backward(struct smalti_trained_pass *pass, int64_t layer)
{
	smalti_tape_barrier(&pass->tape);
	if (layer < pass->sample.recomputed)
		insert_layer_again(pass, layer);
	smalti_tape_backward(&pass->tape, pass->mark[layer]);
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++)
		smalti_tape_forget(&pass->tape, smalti_trained_stream(pass, layer + 1)[b]);
}

void smalti_trained_backward(struct smalti_trained_pass *pass, struct smalti_tile *gout,
			     struct smalti_tile *const *const *gradients, bool add)
{
	const int64_t layers = pass->trained->denoiser->layers;
	if (smalti_tape_begin_backward(&pass->tape, gradients, pass->trained->parameters->count, add) == 0) {
		smalti_tape_barrier(&pass->tape);
		smalti_trained_begin_gradients(pass, gout);
		smalti_tape_backward(&pass->tape, pass->mark[layers]);
	}
	for (int64_t i = layers - 1; i >= 0 && goes_on(pass); i--)
		layer_backward(pass, i);
	smalti_tape_barrier(&pass->tape);
	if (goes_on(pass))
		smalti_tape_backward(&pass->tape, (struct smalti_tape_mark){0, 0});
	if (pass->sample.gx && goes_on(pass))
		smalti_trained_planes_gradient(pass);
	leave(pass);
	smalti_trained_drop(pass);
}

void smalti_trained_drop(struct smalti_trained_pass *pass)
{
	if (!pass)
		return;
	smalti_tape_free(&pass->tape);
	pass->trained->functions->close(pass);
	free(pass->place);
	free(pass->patches);
	free(pass->z);
	free(pass->v);
	free(pass->mark);
	free(pass);
}
