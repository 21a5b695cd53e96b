/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/weights.h"
#include "graphs/weight_forms.h"

/* The pairs of a model under way. */
struct adapting {
	const struct smalti_adapter_set *adapters;
	struct smalti_dit_adapted *adapted;
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
	linear->low_rank = pair;
}

static void adapt_embedder(struct adapting *a, struct smalti_dit_embedder *embedder)
{
	adapt(a, &embedder->linear_1);
	adapt(a, &embedder->linear_2);
}

static void adapt_attention(struct adapting *a, struct smalti_dit_attention *attention)
{
	adapt(a, &attention->q);
	adapt(a, &attention->kv);
	adapt(a, &attention->out);
}

enum { LAYERS_OF_BLOCK = 8, OTHER_LAYERS = 10 };

/* The embedding of patches has its changes merged: its task is more than a product. */
static void adapt_all(struct adapting *a, struct smalti_dit *dit)
{
	smalti_dit_load_patch(dit, a->adapted->weights);
	adapt_embedder(a, &dit->timestep);
	adapt_embedder(a, &dit->resolution);
	adapt_embedder(a, &dit->aspect_ratio);
	adapt(a, &dit->adaln);
	adapt_embedder(a, &dit->caption);
	for (int64_t i = 0; i < dit->config.layers; i++) {
		adapt_attention(a, &dit->blocks[i].self);
		adapt_attention(a, &dit->blocks[i].cross);
		adapt(a, &dit->blocks[i].ff_in);
		adapt(a, &dit->blocks[i].ff_out);
	}
	adapt(a, &dit->out);
}

static struct smalti_dit_adapted *new_adapted(const struct smalti_dit *base,
					      struct smalti_task_group *task_group,
					      const struct smalti_adapter_set *adapters,
					      struct smalti_error *error)
{
	struct smalti_dit_adapted *adapted = smalti_calloc(1, sizeof(*adapted), error);
	if (!adapted)
		return NULL;
	adapted->checkpoint = *smalti_weights_checkpoint(base->denoiser.weights);
	adapted->checkpoint.adapters = adapters;
	adapted->weights = smalti_weights_new(task_group, &adapted->checkpoint, base->compute, error);
	adapted->pairs = smalti_calloc(base->config.layers * LAYERS_OF_BLOCK + OTHER_LAYERS,
				       sizeof(*adapted->pairs), error);
	if (adapted->weights && adapted->pairs)
		return adapted;
	smalti_dit_adapted_free(adapted);
	return NULL;
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
	struct smalti_dit_adapted *adapted = new_adapted(base, task_group, adapters, error);
	struct smalti_dit *dit = adapted ? copy(base, adapted, error) : NULL;
	struct smalti_error failure = SMALTI_NO_ERROR;
	if (!dit) {
		smalti_dit_adapted_free(adapted);
		return NULL;
	}
	struct adapting adapting = {adapters, adapted, &failure};
	adapt_all(&adapting, dit);
	if (smalti_pass(error, &failure) == 0 && smalti_weights_status(adapted->weights, error) == 0)
		return &dit->denoiser;
	smalti_denoiser_free(&dit->denoiser);
	return NULL;
}
