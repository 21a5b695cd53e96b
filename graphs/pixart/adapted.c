/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter_names.h"
#include "graphs/parameters.h"
#include "graphs/pixart/weights.h"
#include "graphs/weight_forms.h"

/* The pairs of a model under way. */
struct adapting {
	void (*visit)(struct adapting *a, struct smalti_linear *linear); /* each layer */
	const struct smalti_adapter_set *adapters;                       /* NULL in training */
	struct smalti_dit_adapted *adapted;
	struct smalti_weights *weights;
	struct smalti_error *error;
};

static bool has_part(const struct smalti_linear *linear, int part)
{
	return linear->weight && part < SMALTI_WEIGHT_PARTS && smalti_weight_view(linear->weight, part)->name;
}

/* Returns the sum of the ranks of what changes a part. */
static int64_t rank_of(const struct adapting *a, const struct smalti_tensor_view *part)
{
	int64_t rank = 0;
	for (int i = 0; i < a->adapters->count; i++) {
		const struct smalti_low_rank *change =
		    smalti_adapter_find(a->adapters->uses[i].adapter, part->name);
		rank += change ? change->rank : 0;
	}
	return rank;
}

/* Copies one change: A to rows `rank` on of `down` [*, in], w·s·B to columns `rank` on of rows `first` on of
 * `up` [out, ranks]. */
static void copy_change(const struct smalti_low_rank *c, double weight, int64_t first, int64_t rank,
			int64_t ranks, float *down, float *up)
{
	memcpy(down + rank * c->in, c->a, (size_t)(c->rank * c->in) * sizeof(*down));
	for (int64_t o = 0; o < c->out; o++)
		for (int64_t r = 0; r < c->rank; r++)
			up[(first + o) * ranks + rank + r] =
			    (float)(weight * c->scale * (double)c->b[o * c->rank + r]);
}

static void copy_changes(const struct adapting *a, const struct smalti_linear *linear, int64_t ranks,
			 float *down, float *up)
{
	int64_t first = 0, rank = 0;
	for (int i = 0; has_part(linear, i); i++) {
		const struct smalti_tensor_view *part = smalti_weight_view(linear->weight, i);
		for (int k = 0; k < a->adapters->count; k++) {
			const struct smalti_adapter_use *use = &a->adapters->uses[k];
			const struct smalti_low_rank *change = smalti_adapter_find(use->adapter, part->name);
			if (!change)
				continue;
			copy_change(change, use->weight, first, rank, ranks, down, up);
			rank += change->rank;
		}
		first += part->shape[0];
	}
}

/* Adds what the adapters change of a layer. */
static void adapt(struct adapting *a, struct smalti_linear *linear)
{
	struct smalti_dit_adapted *adapted = a->adapted;
	int64_t ranks = 0;
	for (int i = 0; has_part(linear, i); i++)
		ranks += rank_of(a, smalti_weight_view(linear->weight, i));
	if (ranks == 0 || a->error->code != SMALTI_OK)
		return;
	float *down = smalti_calloc(ranks * linear->in, sizeof(*down), a->error);
	float *up = smalti_calloc(linear->out * ranks, sizeof(*up), a->error);
	if (!down || !up) {
		free(down);
		free(up);
		return;
	}
	copy_changes(a, linear, ranks, down, up);
	struct smalti_low_rank_pair *pair = &adapted->pairs[adapted->count++];
	pair->down = smalti_weights_given(adapted->weights, linear->in, ranks, linear->compute, down);
	pair->up = smalti_weights_given(adapted->weights, ranks, linear->out, linear->compute, up);
	pair->scale = 1;
	linear->low_rank = pair;
}

/* Loads a matrix of an adapter in training, "MODULE.lora_A". */
static struct smalti_linear load_trained(struct smalti_weights *weights, int64_t in, int64_t out,
					 const char *module, const char *which)
{
	return smalti_weights_linear(weights, in, out, false, module, (const char *const[3]){which});
}

/* Adds the pair of a part, whose columns begin at `first`, if it has one. */
static void train_part(const struct adapting *a, struct smalti_linear *linear, int part, int64_t first)
{
	const struct smalti_tensor_view *view = smalti_weight_view(linear->weight, part);
	const struct smalti_parameters *parameters = a->weights->parameters;
	SCOPED(free)
	char *module = smalti_format(a->error, SMALTI_PEFT_PREFIX "%.*s",
				     (int)(strlen(view->name) - strlen(".weight")), view->name);
	SCOPED(free) char *name = module ? smalti_format(a->error, "%s.lora_A.weight", module) : NULL;
	const int64_t found = name ? smalti_parameters_find(parameters, name) : -1;
	if (found < 0)
		return;
	struct smalti_low_rank_pair *pair = &a->adapted->pairs[a->adapted->count++];
	const int64_t rank = parameters->list[found].shape[0];
	*pair = (struct smalti_low_rank_pair){
	    .down = load_trained(a->weights, linear->in, rank, module, ".lora_A"),
	    .up = load_trained(a->weights, rank, view->shape[0], module, ".lora_B"),
	    .first = first,
	    .scale = parameters->scale,
	    .next = linear->trained};
	pair->down.compute = pair->up.compute = linear->compute;
	linear->trained = pair;
}

/* Adds the pairs of a layer in training. */
static void train(struct adapting *a, struct smalti_linear *linear)
{
	int64_t first = 0;
	for (int i = 0; has_part(linear, i); i++) {
		train_part(a, linear, i, first);
		first += smalti_weight_view(linear->weight, i)->shape[0];
	}
}

static void visit_attention(struct adapting *a, struct smalti_dit_attention *attention)
{
	a->visit(a, &attention->q);
	a->visit(a, &attention->kv);
	a->visit(a, &attention->out);
}

enum { PAIRS_OF_BLOCK = 10, OTHER_PAIRS = 10 };

/* Visits all layers but the embedding of patches. */
static void visit_all(struct adapting *a, struct smalti_dit *dit)
{
	struct smalti_dit_embedder *const embedders[] = {&dit->timestep, &dit->resolution, &dit->aspect_ratio,
							 &dit->caption};
	for (size_t i = 0; i < COUNT_OF(embedders); i++) {
		a->visit(a, &embedders[i]->linear_1);
		a->visit(a, &embedders[i]->linear_2);
	}
	a->visit(a, &dit->adaln);
	for (int64_t i = 0; i < dit->config.layers; i++) {
		visit_attention(a, &dit->blocks[i].self);
		visit_attention(a, &dit->blocks[i].cross);
		a->visit(a, &dit->blocks[i].ff_in);
		a->visit(a, &dit->blocks[i].ff_out);
	}
	a->visit(a, &dit->out);
}

static struct smalti_dit_adapted *new_adapted(const struct smalti_dit *dit, struct smalti_error *error)
{
	struct smalti_dit_adapted *adapted = smalti_calloc(1, sizeof(*adapted), error);
	if (!adapted)
		return NULL;
	adapted->pairs =
	    smalti_calloc(dit->config.layers * PAIRS_OF_BLOCK + OTHER_PAIRS, sizeof(*adapted->pairs), error);
	if (adapted->pairs)
		return adapted;
	free(adapted);
	return NULL;
}

/* Makes the weights of adapters beside those of the base. */
static int make_weights(struct smalti_dit_adapted *adapted, const struct smalti_dit *base,
			struct smalti_task_group *task_group, const struct smalti_adapter_set *adapters,
			struct smalti_error *error)
{
	adapted->checkpoint = *base->denoiser.weights->checkpoint;
	adapted->checkpoint.adapters = adapters;
	adapted->weights = smalti_weights_new(task_group, &adapted->checkpoint, base->compute, error);
	return adapted->weights ? 0 : -1;
}

void smalti_dit_adapted_free(struct smalti_dit_adapted *adapted)
{
	if (!adapted)
		return;
	smalti_weights_free(adapted->weights);
	free(adapted->pairs);
	free(adapted);
}

static struct smalti_dit *copy(const struct smalti_dit *base, struct smalti_dit_adapted *adapted,
			       struct smalti_error *error)
{
	struct smalti_dit *dit = smalti_calloc(1, sizeof(*dit), error);
	struct smalti_dit_block *blocks = smalti_calloc(base->config.layers, sizeof(*base->blocks), error);
	if (!dit || !blocks) {
		free(dit);
		free(blocks);
		return NULL;
	}
	memcpy(blocks, base->blocks, (size_t)base->config.layers * sizeof(*blocks));
	*dit = *base;
	dit->blocks = blocks;
	dit->shards = NULL;
	dit->adapted = adapted;
	return dit;
}

struct smalti_denoiser *smalti_dit_adapt(const struct smalti_denoiser *denoiser,
					 struct smalti_task_group *task_group,
					 const struct smalti_adapter_set *adapters,
					 struct smalti_error *error)
{
	const struct smalti_dit *base = (const struct smalti_dit *)denoiser;
	struct smalti_dit_adapted *adapted = new_adapted(base, error);
	struct smalti_dit *dit = adapted && make_weights(adapted, base, task_group, adapters, error) == 0
				     ? copy(base, adapted, error)
				     : NULL;
	struct smalti_error failure = SMALTI_NO_ERROR;
	if (!dit) {
		smalti_dit_adapted_free(adapted);
		return NULL;
	}
	struct adapting adapting = {adapt, adapters, adapted, adapted->weights, &failure};
	smalti_dit_load_patch(dit, adapted->weights); /* merged: its task is more than a product */
	visit_all(&adapting, dit);
	if (smalti_pass(error, &failure) == 0 && smalti_weights_status(adapted->weights, error) == 0)
		return &dit->denoiser;
	smalti_denoiser_free(&dit->denoiser);
	return NULL;
}

int smalti_dit_train_adapters(struct smalti_dit *dit, struct smalti_error *error)
{
	const struct smalti_parameters *parameters = dit->denoiser.weights->parameters;
	if (!parameters || !parameters->base)
		return 0;
	dit->adapted = new_adapted(dit, error);
	if (!dit->adapted)
		return -1;
	struct smalti_error failure = SMALTI_NO_ERROR;
	struct adapting adapting = {train, NULL, dit->adapted, dit->denoiser.weights, &failure};
	train(&adapting, &dit->patch);
	visit_all(&adapting, dit);
	return smalti_pass(error, &failure) ? -1 : smalti_weights_status(dit->denoiser.weights, error);
}
