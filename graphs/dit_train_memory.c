/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/dit_train_memory.h"
#include "graphs/dit_block.h"
#include "graphs/dit_train_pass.h"
#include "kernels/attention.h"
#include "kernels/conditioning.h"
#include "rt/pool.h"

/* A count under way. All blocks have the extents of the first. */
struct count {
	const struct smalti_dit_train *train;
	const struct smalti_dit_sample *sample;
	const struct smalti_train_block *block;
	int64_t width, compute; /* compute: bytes of an operand */
};

static int64_t tile(int64_t rows, int64_t columns, int64_t element)
{
	return smalti_pool_block_bytes(rows * columns * element);
}

static int64_t floats(int64_t rows, int64_t columns)
{
	return tile(rows, columns, sizeof(float));
}

/* A tile for each band. */
static int64_t grid(const struct count *c, int64_t columns, int64_t element)
{
	const struct smalti_partition *bands = &c->sample->tokens->partition;
	int64_t bytes = 0;
	for (int64_t band = 0; band < bands->bands; band++)
		bytes += tile(smalti_partition_rows(bands, band), columns, element);
	return bytes;
}

/* The stream, or a gradient of it. */
static int64_t stream(const struct count *c)
{
	return grid(c, c->width, sizeof(float));
}

static int64_t attention_kept(const struct count *c, const struct smalti_train_attention *attention,
			      int grids)
{
	return grids * grid(c, attention->q.out, smalti_dtype_bytes(attention->dtype)) +
	       grid(c, c->block->heads, sizeof(float));
}

/* What the backward of a block reads of its forward, but its input. */
static int64_t block_kept(const struct count *c)
{
	const struct smalti_train_attention *cross = &c->block->cross;
	const int64_t caption = tile(c->sample->text_tokens, cross->k.out, smalti_dtype_bytes(cross->dtype));
	return attention_kept(c, &c->block->self, 4) + attention_kept(c, cross, 2) + 4 * stream(c) +
	       grid(c, c->block->mlp.first.out, sizeof(float)) + floats(BLOCK_ROWS, c->width) + 2 * caption;
}

/* What a block's forward makes and releases: the running states of attention, what is added after
 * cross-attention, normalized rows, the MLP's activations. */
static int64_t block_forward(const struct count *c)
{
	const struct smalti_partition *bands = &c->sample->tokens->partition;
	int64_t states = 0;
	for (int64_t band = 0; bands->bands > 1 && band < bands->bands; band++)
		states += floats(1, smalti_attention_state(smalti_partition_rows(bands, band),
							   c->block->heads, c->train->config.head_dim));
	return states + stream(c) + 2 * grid(c, c->width, c->compute) +
	       grid(c, c->block->mlp.second.in, c->compute);
}

/* The same of its backward, in its order: the gradients of queries, keys and values; of the MLP's result, its
 * input, its activations; of both attentions' results and of the caption's queries; of the projections'
 * input. */
static int64_t block_backward(const struct count *c)
{
	const int64_t heads = grid(c, c->block->self.q.out, sizeof(float));
	const int64_t hidden = c->block->mlp.second.in;
	const int64_t tables =
	    floats(BLOCK_ROWS, c->width) + 2 * floats(c->sample->text_tokens, c->block->cross.k.out);
	return tables + 3 * heads + 2 * stream(c) + grid(c, hidden, sizeof(float)) +
	       grid(c, hidden, c->compute) + 3 * heads + 2 * stream(c) + 2 * grid(c, c->width, c->compute);
}

/* Rows through an embedder, which keeps its input and hidden values and gives its result; its backward has
 * the activations again and their gradients. */
static int64_t embedder(const struct smalti_train_mlp *mlp, int64_t rows)
{
	return floats(rows, 1) + floats(rows, mlp->first.in) + 4 * floats(rows, mlp->first.out) +
	       2 * floats(rows, mlp->second.out);
}

/* All that depends on the timestep and the caption, and its gradients. */
static int64_t conditions(const struct count *c)
{
	const struct smalti_dit_train *train = c->train;
	const int64_t tokens = c->sample->text_tokens, width = c->width;
	int64_t bytes = embedder(&train->timestep, 1) + 6 * floats(1, width) + 2 * floats(6, width) +
			2 * floats(2, width);
	if (train->config.additional_conditions)
		bytes += embedder(&train->resolution, 2) + embedder(&train->aspect_ratio, 1);
	if (train->config.caption_channels)
		bytes += 2 * floats(tokens, train->caption.first.out) +
			 2 * tile(tokens, train->caption.first.out, c->compute) + 2 * floats(tokens, width);
	return bytes;
}

/* Patches and positions at one end, the result and its gradient at the other. */
static int64_t ends(const struct count *c)
{
	const struct smalti_transformer_config *config = &c->train->config;
	const int64_t patch = config->patch_size, area = patch * patch;
	const int64_t sides = c->sample->height / patch + c->sample->width / patch;
	return grid(c, config->in_channels * area, sizeof(float)) + floats(sides, c->width / 2) +
	       2 * grid(c, config->out_channels * area, sizeof(float)) + 2 * grid(c, c->width, c->compute) +
	       2 * stream(c) /* the gradient of the stream, and of what the last layer normalizes */ +
	       2 * floats(config->out_channels, c->sample->height * c->sample->width);
}

/* With blocks that take turns: when the last that keeps what it made, and when the last that is computed
 * again begins its backward. */
static int64_t bounded(const struct count *c, int64_t layers, int64_t recomputed)
{
	const int64_t kept = block_kept(c), one = smalti_max(block_forward(c), block_backward(c));
	const int64_t first = (layers + 1) * stream(c) + (layers - recomputed) * kept + one;
	const int64_t again = (recomputed + 1) * stream(c) + kept + one;
	return recomputed > 0 ? smalti_max(first, again) : first;
}

/* All together. */
static int64_t unbounded(const struct count *c, int64_t layers, int64_t recomputed)
{
	const int64_t block = block_kept(c) + block_forward(c);
	return (layers + 1) * stream(c) + layers * (block + block_backward(c)) + recomputed * block;
}

static struct count begin(const struct smalti_dit_train *train, const struct smalti_dit_sample *sample)
{
	return (struct count){.train = train,
			      .sample = sample,
			      .block = train->blocks,
			      .width = train->config.width,
			      .compute = smalti_dtype_bytes(train->compute)};
}

int64_t smalti_dit_train_memory(const struct smalti_dit_train *train, const struct smalti_dit_sample *sample)
{
	const struct count c = begin(train, sample);
	const int64_t layers = train->config.layers;
	return conditions(&c) + ends(&c) +
	       (sample->bounded ? bounded : unbounded)(&c, layers, sample->recomputed);
}

/* Each product is of a band's rows, or the caption's: its operands may be rounded. What is packed at a time
 * is as large whatever the model is. */
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
