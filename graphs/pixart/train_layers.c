/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"
#include "kernels/backward.h"
#include "rt/session.h"

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

/* Finds the layers' tensors; the first that is missing is kept in `error`. */
struct finder {
	const struct smalti_parameters *parameters;
	int shard;
	struct smalti_error *error;
};

/* Returns -1 if it is missing, or the shard has nothing of it. */
static int64_t find(const struct finder *f, const char *prefix, const char *name)
{
	char full[160];
	snprintf(full, sizeof(full), "%s%s", prefix, name);
	if (smalti_parameters_find(f->parameters, full) < 0)
		smalti_fail(f->error, SMALTI_EINVAL, "the parameters to be trained have no tensor %s", full);
	return smalti_parameters_find_part(f->parameters, full, f->shard);
}

static struct smalti_train_linear linear_of(const struct finder *f, const char *prefix, bool bias, bool exact)
{
	const int64_t weight = find(f, prefix, ".weight");
	if (weight < 0)
		return (struct smalti_train_linear){0};
	const struct smalti_parameter *p = &f->parameters->list[weight];
	return (struct smalti_train_linear){.weight = weight,
					    .bias = bias ? find(f, prefix, ".bias") : -1,
					    .in = p->count / p->shape[0],
					    .out = p->shape[0],
					    .exact = exact};
}

static struct smalti_train_mlp mlp_of(const struct finder *f, const char *prefix, const char *first,
				      const char *second, bool gelu)
{
	char name[128];
	struct smalti_train_mlp mlp = {.gelu = gelu};
	snprintf(name, sizeof(name), "%s%s", prefix, first);
	mlp.first = linear_of(f, name, true, !gelu);
	snprintf(name, sizeof(name), "%s%s", prefix, second);
	mlp.second = linear_of(f, name, true, !gelu);
	return mlp;
}

static struct smalti_train_attention attention_of(const struct finder *f, int64_t block, const char *name,
						  bool bias, enum smalti_dtype dtype)
{
	static const char *const layers[] = {"to_q", "to_k", "to_v", "to_out.0"};
	struct smalti_train_linear found[COUNT_OF(layers)];
	for (size_t i = 0; i < COUNT_OF(layers); i++) {
		char full[96];
		snprintf(full, sizeof(full), "transformer_blocks.%lld.%s.%s", (long long)block, name,
			 layers[i]);
		found[i] = linear_of(f, full, bias || i == COUNT_OF(layers) - 1, false);
	}
	return (struct smalti_train_attention){found[0], found[1], found[2], found[3], dtype};
}

/* Finds a block; f16 ends at 65504, so there self-attention takes f32. */
static void find_block(struct smalti_dit_train *train, const struct finder *f, int64_t i)
{
	struct smalti_train_block *block = &train->blocks[i * train->parameters->shards + f->shard];
	const bool bias = train->config.attention_bias;
	char prefix[64];
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld.", (long long)i);
	block->self =
	    attention_of(f, i, "attn1", bias, train->compute == SMALTI_F16 ? SMALTI_F32 : train->compute);
	block->cross = attention_of(f, i, "attn2", bias, train->compute);
	block->mlp = mlp_of(f, prefix, "ff.net.0.proj", "ff.net.2", true);
	block->table = find(f, prefix, "scale_shift_table");
	block->heads = block->self.q.out / train->config.head_dim;
}

static void find_blocks(struct smalti_dit_train *train, const struct finder *all)
{
	struct finder f = *all;
	for (f.shard = 0; f.shard < train->parameters->shards; f.shard++)
		for (int64_t i = 0; i < train->config.layers; i++)
			find_block(train, &f, i);
}

static void find_layers(struct smalti_dit_train *train, const struct finder *f)
{
	const struct smalti_transformer_config *c = &train->config;
	train->patch = linear_of(f, "pos_embed.proj", true, false);
	train->timestep = mlp_of(f, "adaln_single.emb.timestep_embedder.", "linear_1", "linear_2", false);
	if (c->additional_conditions) {
		train->resolution =
		    mlp_of(f, "adaln_single.emb.resolution_embedder.", "linear_1", "linear_2", false);
		train->aspect_ratio =
		    mlp_of(f, "adaln_single.emb.aspect_ratio_embedder.", "linear_1", "linear_2", false);
	}
	train->adaln = linear_of(f, "adaln_single.linear", true, true);
	if (c->caption_channels)
		train->caption = mlp_of(f, "caption_projection.", "linear_1", "linear_2", true);
	find_blocks(train, f);
	train->final_table = find(f, "", "scale_shift_table");
	train->out = linear_of(f, "proj_out", true, false);
}

struct smalti_dit_train *smalti_dit_train_new(const struct smalti_transformer_config *config,
					      const struct smalti_parameters *parameters,
					      enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_error missing = SMALTI_NO_ERROR;
	const struct finder finder = {parameters, 0, &missing};
	struct smalti_dit_train *train = smalti_calloc(1, sizeof(*train), error);
	if (!train)
		return NULL;
	train->config = *config;
	train->parameters = parameters;
	train->compute = compute;
	train->blocks = smalti_calloc(config->layers * parameters->shards, sizeof(*train->blocks), &missing);
	train->rounded = smalti_calloc(parameters->count, sizeof(*train->rounded), &missing);
	if (train->blocks && train->rounded)
		find_layers(train, &finder);
	if (smalti_pass(error, &missing) == 0)
		return train;
	smalti_dit_train_free(train);
	return NULL;
}

void smalti_dit_train_free(struct smalti_dit_train *train)
{
	if (!train)
		return;
	free(train->blocks);
	free(train->rounded);
	free(train);
}

/* A step's rounded copies */

/* A function that is called for each weight that products read rounded. */
typedef void each_rounded(void *user, const struct smalti_train_linear *linear);

static void each_of_attention(const struct smalti_train_attention *attention, each_rounded *each, void *user)
{
	each(user, &attention->q);
	each(user, &attention->k);
	each(user, &attention->v);
	each(user, &attention->out);
}

static void each_of_mlp(const struct smalti_train_mlp *mlp, each_rounded *each, void *user)
{
	each(user, &mlp->first);
	each(user, &mlp->second);
}

static void for_each_rounded(const struct smalti_dit_train *train, each_rounded *each, void *user)
{
	if (train->compute == SMALTI_F32)
		return;
	each(user, &train->patch);
	if (train->config.caption_channels)
		each_of_mlp(&train->caption, each, user);
	for (int64_t i = 0; i < train->config.layers * train->parameters->shards; i++) {
		each_of_attention(&train->blocks[i].self, each, user);
		each_of_attention(&train->blocks[i].cross, each, user);
		each_of_mlp(&train->blocks[i].mlp, each, user);
	}
	each(user, &train->out);
}

struct rounding {
	struct smalti_dit_train *train;
	struct smalti_task_group *task_group;
};

static void round_weight(void *user, const struct smalti_train_linear *linear)
{
	const struct rounding *r = user;
	if (linear->out == 0)
		return;
	const struct smalti_parameter *p = &r->train->parameters->list[linear->weight];
	struct smalti_tile **copy = &r->train->rounded[linear->weight];
	*copy =
	    smalti_tile_new(r->task_group, linear->out, linear->in * smalti_dtype_bytes(r->train->compute));
	smalti_insert(convert, r->task_group, (.x = p->value, .y = *copy), .count = p->count,
		      .from = SMALTI_F32, .to = r->train->compute);
}

/* Tells whether copies pay: they are smaller to move, and rounded once. */
static bool needs_copies(const struct smalti_dit_train *train, const struct smalti_session *session)
{
	return smalti_session_place_count(session) > 1 ||
	       smalti_product_dtype(train->compute) != train->compute;
}

void smalti_dit_train_begin_step(struct smalti_dit_train *train, struct smalti_task_group *task_group)
{
	struct rounding rounding = {train, task_group};
	if (needs_copies(train, task_group->session))
		for_each_rounded(train, round_weight, &rounding);
}

static void count_elements(void *user, const struct smalti_train_linear *linear)
{
	int64_t *elements = user;
	*elements += linear->out * linear->in;
}

int64_t smalti_dit_train_rounded_bytes(const struct smalti_dit_train *train,
				       const struct smalti_session *session)
{
	int64_t elements = 0;
	if (needs_copies(train, session))
		for_each_rounded(train, count_elements, &elements);
	return elements * smalti_dtype_bytes(train->compute);
}

void smalti_dit_train_end_step(struct smalti_dit_train *train)
{
	for (int64_t i = 0; i < train->parameters->count; i++) {
		smalti_tile_release(train->rounded[i]);
		train->rounded[i] = NULL;
	}
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
	const int64_t columns = train->blocks->mlp.first.out, width = train->config.width;
	return PACKED + (2 * rows * columns + (train->compute == SMALTI_F32 ? 0 : width * columns)) *
			    (int64_t)sizeof(float);
}
