/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/t5/parts.h"

static struct smalti_t5_matrix load_matrix(struct smalti_t5 *t5, int64_t count, int64_t each, int64_t in,
					   const char *prefix, const char *name)
{
	struct smalti_t5_matrix matrix = {.count = count, .each = each, .in = in};
	char full[128];
	snprintf(full, sizeof(full), "%s%s.weight", prefix, name);
	matrix.weight = smalti_weights_factor(t5->encoder.weights, count * each, in, &matrix.dtype, full);
	return matrix;
}

static void load_block(struct smalti_t5 *t5, int64_t i)
{
	const struct smalti_t5_config *c = &t5->config;
	struct smalti_t5_block *b = &t5->blocks[i];
	const struct {
		int layer;
		const char *name;
		int64_t count, each, in;
	} rows[SMALTI_T5_MATRICES] = {
	    [SMALTI_T5_Q] = {0, "SelfAttention.q", c->heads, c->head_dim, c->width},
	    [SMALTI_T5_K] = {0, "SelfAttention.k", c->heads, c->head_dim, c->width},
	    [SMALTI_T5_V] = {0, "SelfAttention.v", c->heads, c->head_dim, c->width},
	    [SMALTI_T5_O] = {0, "SelfAttention.o", c->width, 1, c->inner},
	    [SMALTI_T5_WI_0] = {1, "DenseReluDense.wi_0", c->ff_width, 1, c->width},
	    [SMALTI_T5_WI_1] = {1, "DenseReluDense.wi_1", c->ff_width, 1, c->width},
	    [SMALTI_T5_WO] = {1, "DenseReluDense.wo", c->width, 1, c->ff_width},
	};
	char prefix[2][64];
	for (int layer = 0; layer < 2; layer++)
		snprintf(prefix[layer], sizeof(prefix[layer]), "encoder.block.%lld.layer.%d.", (long long)i,
			 layer);
	b->norm1 = smalti_weights_vector(t5->encoder.weights, c->width, "%slayer_norm.weight", prefix[0]);
	b->norm2 = smalti_weights_vector(t5->encoder.weights, c->width, "%slayer_norm.weight", prefix[1]);
	for (int m = 0; m < SMALTI_T5_MATRICES; m++)
		b->matrix[m] = load_matrix(t5, rows[m].count, rows[m].each, rows[m].in, prefix[rows[m].layer],
					   rows[m].name);
}

void smalti_t5_load(struct smalti_t5 *t5)
{
	const struct smalti_t5_config *c = &t5->config;
	t5->embedding = (struct smalti_t5_matrix){.count = c->vocabulary, .each = 1, .in = c->width};
	t5->embedding.weight = smalti_weights_table(t5->encoder.weights, c->vocabulary, c->width,
						    &t5->embedding.dtype, "shared.weight");
	t5->relative_bias =
	    smalti_weights_rows(t5->encoder.weights, c->buckets, c->heads,
				"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
	for (int64_t i = 0; i < c->layers; i++)
		load_block(t5, i);
	t5->final_norm =
	    smalti_weights_vector(t5->encoder.weights, c->width, "encoder.final_layer_norm.weight");
}

int smalti_t5_cut_weights(struct smalti_t5 *t5, struct smalti_error *error)
{
	for (int64_t i = 0; i < t5->config.layers && !t5->cut; i++)
		for (int m = 0; m < SMALTI_T5_MATRICES; m++)
			for (int shard = 0; shard < t5->shards; shard++) {
				struct smalti_t5_matrix *matrix = &t5->blocks[i].matrix[m];
				matrix->part[shard] = smalti_weights_table_rows(
				    matrix->weight,
				    smalti_t5_shard_begin(t5, matrix->count, shard) * matrix->each,
				    smalti_t5_shard_size(t5, matrix->count, shard) * matrix->each,
				    matrix->in);
			}
	t5->cut = true;
	return smalti_weights_status(t5->encoder.weights, error);
}
