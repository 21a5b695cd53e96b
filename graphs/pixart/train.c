/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/pixart/train_pass.h"

int smalti_dit_train_check(const struct smalti_strategy *strategy, struct smalti_error *error)
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

/* Tells whether a parameter depends on the timestep or the caption, and on no token. */
static bool is_condition(const char *name)
{
	static const char *const prefixes[] = {"adaln_single.", "caption_projection."};
	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool smalti_dit_train_gives(const struct smalti_dit_train *train, int part, int64_t index)
{
	const struct smalti_parameter *p = &train->parameters->list[index];
	if (p->cut.is_part)
		return p->cut.shard == part % train->parameters->shards;
	return part == 0 || !is_condition(p->name);
}

/* Makes the model; f16 ends at 65504, so there self-attention takes f32. */
static int make_model(struct smalti_dit_train *train, const struct smalti_transformer_config *config,
		      enum smalti_dtype compute, struct smalti_error *error)
{
	train->dit = smalti_dit_of(smalti_weights_of_parameters(train->parameters, compute, error), config,
				   compute, error);
	if (!train->dit)
		return -1;
	train->dit->attention = compute == SMALTI_F16 ? SMALTI_F32 : compute;
	train->shards = smalti_dit_shards_of(train->dit, train->parameters->strategy, error);
	return train->shards ? 0 : -1;
}

struct smalti_dit_train *smalti_dit_train_new(const struct smalti_transformer_config *config,
					      const struct smalti_parameters *parameters,
					      enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_dit_train *train = smalti_calloc(1, sizeof(*train), error);
	if (!train)
		return NULL;
	train->parameters = parameters;
	if (make_model(train, config, compute, error) == 0)
		return train;
	smalti_dit_train_free(train);
	return NULL;
}

void smalti_dit_train_free(struct smalti_dit_train *train)
{
	if (train && train->dit)
		smalti_denoiser_free(&train->dit->denoiser);
	free(train);
}

void smalti_dit_train_begin_step(struct smalti_dit_train *train, struct smalti_task_group *task_group)
{
	smalti_weights_begin_step(train->dit->denoiser.weights, task_group);
}

void smalti_dit_train_end_step(struct smalti_dit_train *train)
{
	smalti_weights_end_step(train->dit->denoiser.weights);
}

int64_t smalti_dit_train_rounded_bytes(const struct smalti_dit_train *train,
				       const struct smalti_session *session)
{
	return smalti_weights_step_bytes(train->dit->denoiser.weights, session);
}

/* Counts the largest product, of a band's rows or the caption's, with operands that may be rounded. Packing
 * takes the same for all models. */
int64_t smalti_dit_train_scratch(const struct smalti_dit_train *train, const struct smalti_dit_sample *sample)
{
	enum { PACKED = 1 << 20 };
	const struct smalti_partition *bands = &sample->tokens->partition;
	int64_t rows = sample->text_tokens;
	for (int64_t band = 0; band < bands->bands; band++)
		rows = smalti_max(rows, smalti_partition_rows(bands, band));
	const int64_t columns = train->dit->blocks->ff_in.out, width = train->dit->config.width;
	return PACKED + (2 * rows * columns + (train->dit->compute == SMALTI_F32 ? 0 : width * columns)) *
			    (int64_t)sizeof(float);
}

/* A pass */

static void open_tape(struct smalti_dit_pass *pass, struct smalti_task_group *task_group)
{
	const struct smalti_strategy *strategy = pass->sample.tokens->strategy;
	const int shards = pass->train->parameters->shards;
	const int parts = smalti_dit_train_parts(strategy);
	for (int i = 0; i < parts; i++)
		pass->place[i] =
		    smalti_strategy_place(strategy, pass->sample.replica, 0, i % shards, i / shards);
	pass->tape = (struct smalti_tape){
	    .task_group = task_group, .records = true, .parts = parts, .place = pass->place, .open = -1};
}

static int allocate(struct smalti_dit_pass *pass, struct smalti_error *error)
{
	const int64_t layers = pass->train->dit->config.layers, bands = pass->sample.tokens->partition.bands;
	pass->place =
	    smalti_calloc(smalti_dit_train_parts(pass->sample.tokens->strategy), sizeof(*pass->place), error);
	pass->patches = smalti_calloc(bands, sizeof(*pass->patches), error);
	pass->z = smalti_calloc((layers + 1) * bands, sizeof(*pass->z), error);
	pass->v = smalti_calloc(bands, sizeof(*pass->v), error);
	pass->mark = smalti_calloc(layers + 1, sizeof(*pass->mark), error);
	return pass->place && pass->patches && pass->z && pass->v && pass->mark ? 0 : -1;
}

static const struct smalti_dit_task conditions_task = {SMALTI_GRAIN_HALF_BLOCK, "conditions",
						       "conditions' gradients"},
				    caption_task = {SMALTI_GRAIN_HALF_BLOCK, "caption",
						    "caption's gradients"};

/* Computes at the first part what the timestep, the size and the caption give. */
static void insert_conditions(struct smalti_dit_pass *pass)
{
	const struct smalti_dit_sample *sample = &pass->sample;
	struct smalti_dit *dit = pass->train->dit;
	struct smalti_dit_forward *f = &pass->forward;
	const float timestep = (float)sample->timestep;
	const struct smalti_dit_conditioning conditioning = {
	    &timestep, 1, {sample->sides[0], sample->sides[1]}, sample->ratio};
	const struct smalti_value text = {sample->text, sample->text_tokens, dit->denoiser.text_width,
					  SMALTI_F32, 0};
	smalti_tape_go(&pass->tape, 0);
	smalti_dit_begin_task(f, &conditions_task, 1, pass->place[0]);
	f->conditions = pass->conditions =
	    smalti_dit_conditions_on(&pass->tape, dit, sample->tokens, &conditioning);
	smalti_tape_end_task(&pass->tape);
	smalti_dit_begin_task(f, &caption_task, (double)text.rows, pass->place[0]);
	f->caption = smalti_dit_caption(&pass->tape, dit, text);
	smalti_tape_end_task(&pass->tape);
}

static struct smalti_dit_pass *new_pass(struct smalti_dit_train *train, struct smalti_task_group *task_group,
					const struct smalti_dit_sample *sample)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_dit_pass *pass = smalti_calloc(1, sizeof(*pass), &error);
	if (pass)
		*pass = (struct smalti_dit_pass){.train = train, .sample = *sample};
	if (!pass || allocate(pass, &error) < 0) {
		smalti_task_group_break(task_group, &error);
		smalti_dit_train_drop(pass);
		return NULL;
	}
	open_tape(pass, task_group);
	pass->forward = (struct smalti_dit_forward){.dit = train->dit,
						    .task_group = task_group,
						    .tape = &pass->tape,
						    .tokens = sample->tokens,
						    .strategy = sample->tokens->strategy,
						    .shards = train->shards};
	if (smalti_dit_forward_open(&pass->forward))
		return pass;
	smalti_dit_train_drop(pass);
	return NULL;
}

/* Makes later tasks begin behind all earlier ones, if the sample is bounded. Otherwise tasks that need little
 * run far ahead: blocks are recomputed before they are read, and gradients of weights wait with all that they
 * read. */
static void take_turn(struct smalti_dit_pass *pass)
{
	struct smalti_task_group *task_group = pass->tape.task_group;
	if (!pass->sample.bounded)
		return;
	smalti_task_group_behind(task_group, NULL);
	if (!pass->turn)
		pass->turn = smalti_tile_new(task_group, 1, sizeof(float));
	smalti_insert(clear, task_group, (.y = pass->turn), .bytes = sizeof(float));
	smalti_task_group_behind(task_group, pass->turn);
}

/* Removes place and turn from tasks inserted later. */
static void leave(const struct smalti_dit_pass *pass)
{
	smalti_task_group_place(pass->tape.task_group, SMALTI_ANYWHERE);
	smalti_task_group_behind(pass->tape.task_group, NULL);
}

static bool goes_on(const struct smalti_dit_pass *pass)
{
	return !smalti_task_group_broken(pass->tape.task_group);
}

/* Inserts a block, and writes what is behind it to z; `last`: without its tiles. */
static void insert_block(struct smalti_dit_pass *pass, int64_t block, bool last, struct smalti_value *z)
{
	const int64_t bands = pass->sample.tokens->partition.bands;
	const struct smalti_dit_position at = {pass->sample.replica, block};
	memcpy(z, smalti_dit_stream(pass, block), (size_t)bands * sizeof(*z));
	pass->mark[block] = smalti_tape_mark(&pass->tape);
	smalti_dit_block(&pass->forward, at, (struct smalti_dit_range){0, bands}, false, NULL, last, z);
}

struct smalti_dit_pass *smalti_dit_pass_forward(struct smalti_dit_train *train,
						struct smalti_task_group *task_group,
						const struct smalti_dit_sample *sample, bool keeps_all,
						struct smalti_tile **out)
{
	const int64_t layers = train->dit->config.layers;
	*out = NULL;
	struct smalti_dit_pass *pass = new_pass(train, task_group, sample);
	if (!pass)
		return NULL;
	pass->tape.keeps_all = keeps_all;
	insert_conditions(pass);
	if (goes_on(pass))
		smalti_dit_embed_planes(pass);
	for (int64_t i = 0; i < layers && goes_on(pass); i++) {
		take_turn(pass);
		insert_block(pass, i, false, smalti_dit_stream(pass, i + 1));
		if (i < sample->recomputed)
			smalti_tape_drop(&pass->tape, pass->mark[i]);
	}
	take_turn(pass);
	pass->mark[layers] = smalti_tape_mark(&pass->tape);
	if (goes_on(pass))
		*out = smalti_dit_project_planes(pass);
	leave(pass);
	return pass;
}

struct smalti_dit_pass *smalti_dit_train_forward(struct smalti_dit_train *train,
						 struct smalti_task_group *task_group,
						 const struct smalti_dit_sample *sample,
						 struct smalti_tile **out)
{
	return smalti_dit_pass_forward(train, task_group, sample, false, out);
}

/* Inserts a block once more. The gradients behind it become those of its new results. */
static void insert_block_again(struct smalti_dit_pass *pass, int64_t block)
{
	struct smalti_value *behind = smalti_dit_stream(pass, block + 1);
	insert_block(pass, block, true, pass->v);
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands && goes_on(pass); b++) {
		smalti_dit_go_home(&pass->forward, (struct smalti_dit_position){pass->sample.replica, block},
				   b);
		smalti_tape_hand_over(&pass->tape, behind[b], pass->v[b]);
	}
	take_turn(pass);
}

static void block_backward(struct smalti_dit_pass *pass, int64_t block)
{
	take_turn(pass);
	if (block < pass->sample.recomputed)
		insert_block_again(pass, block);
	smalti_tape_backward(&pass->tape, pass->mark[block]);
	for (int64_t b = 0; b < pass->sample.tokens->partition.bands; b++)
		smalti_tape_forget(&pass->tape, smalti_dit_stream(pass, block + 1)[b]);
}

void smalti_dit_train_backward(struct smalti_dit_pass *pass, struct smalti_tile *gout,
			       struct smalti_tile *const *const *gradients, bool add, struct smalti_tile *gx)
{
	const int64_t layers = pass->train->dit->config.layers, bands = pass->sample.tokens->partition.bands;
	if (smalti_tape_begin_backward(&pass->tape, gradients, pass->train->parameters->count, add) == 0) {
		take_turn(pass);
		smalti_dit_begin_gradients(pass, gout);
		smalti_tape_backward(&pass->tape, pass->mark[layers]);
	}
	for (int64_t i = layers - 1; i >= 0 && goes_on(pass); i--)
		block_backward(pass, i);
	take_turn(pass);
	for (int64_t b = 0; b < bands; b++)
		smalti_value_set_constant(&pass->tape, pass->patches[b], !gx);
	if (goes_on(pass))
		smalti_tape_backward(&pass->tape, (struct smalti_tape_mark){0, 0});
	if (gx && goes_on(pass))
		smalti_dit_planes_gradient(pass, gx);
	leave(pass);
	smalti_dit_train_drop(pass);
}

void smalti_dit_train_drop(struct smalti_dit_pass *pass)
{
	if (!pass)
		return;
	smalti_tape_free(&pass->tape);
	smalti_dit_release_conditions(pass->conditions);
	smalti_dit_forward_close(&pass->forward);
	smalti_tile_release(pass->turn);
	free(pass->place);
	free(pass->patches);
	free(pass->z);
	free(pass->v);
	free(pass->mark);
	free(pass);
}
