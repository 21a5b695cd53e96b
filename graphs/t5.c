/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/t5.h"

#include "base/alloc.h"
#include "graphs/linear.h"

#include <stdio.h>
#include <stdlib.h>

struct block {
	struct smalti_weight *norm1, *norm2;
	struct smalti_linear q, kv, o;
	struct smalti_linear wi_0, wi_1, wo;
};

struct smalti_t5 {
	struct smalti_t5_config config;
	enum smalti_dtype compute;
	struct smalti_store *store;
	struct smalti_weight *embedding, *relative_bias, *final_norm;
	enum smalti_dtype embedding_dtype;
	struct block *blocks;
};

static void load_block(struct smalti_t5 *t5, int64_t i)
{
	const struct smalti_t5_config *c = &t5->config;
	struct block *b = &t5->blocks[i];
	char attention[64], feed_forward[64];
	snprintf(attention, sizeof(attention), "encoder.block.%lld.layer.0.", (long long)i);
	snprintf(feed_forward, sizeof(feed_forward), "encoder.block.%lld.layer.1.", (long long)i);
	const char *const q[3] = {"SelfAttention.q"}, *const kv[3] = {"SelfAttention.k", "SelfAttention.v"};
	const char *const o[3] = {"SelfAttention.o"}, *const wi_0[3] = {"DenseReluDense.wi_0"};
	const char *const wi_1[3] = {"DenseReluDense.wi_1"}, *const wo[3] = {"DenseReluDense.wo"};
	b->norm1 = smalti_store_vector(t5->store, c->width, "%slayer_norm.weight", attention);
	b->q = smalti_store_linear(t5->store, c->width, c->inner, false, attention, q);
	b->kv = smalti_store_linear(t5->store, c->width, 2 * c->inner, false, attention, kv);
	b->o = smalti_store_linear(t5->store, c->inner, c->width, false, attention, o);
	b->norm2 = smalti_store_vector(t5->store, c->width, "%slayer_norm.weight", feed_forward);
	b->wi_0 = smalti_store_linear(t5->store, c->width, c->ff_width, false, feed_forward, wi_0);
	b->wi_1 = smalti_store_linear(t5->store, c->width, c->ff_width, false, feed_forward, wi_1);
	b->wo = smalti_store_linear(t5->store, c->ff_width, c->width, false, feed_forward, wo);
}

static void load(struct smalti_t5 *t5, const struct smalti_checkpoint *checkpoint)
{
	const struct smalti_t5_config *c = &t5->config;
	const char *shared = "shared.weight", *embed_tokens = "encoder.embed_tokens.weight";
	t5->embedding = smalti_store_table(t5->store, c->vocabulary, c->width, &t5->embedding_dtype,
					   smalti_checkpoint_has(checkpoint, shared) ? shared : embed_tokens);
	t5->relative_bias =
	    smalti_store_rows(t5->store, c->buckets, c->heads,
			      "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
	for (int64_t i = 0; i < c->layers; i++)
		load_block(t5, i);
	t5->final_norm = smalti_store_vector(t5->store, c->width, "encoder.final_layer_norm.weight");
}

struct smalti_t5 *smalti_t5_new(struct smalti_scope *scope, const struct smalti_t5_config *config,
				const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				struct smalti_error *error)
{
	struct smalti_t5 *t5 = smalti_calloc(1, sizeof(*t5), error);
	if (!t5)
		return NULL;
	t5->config = *config;
	t5->compute = compute;
	t5->blocks = smalti_calloc(config->layers, sizeof(*t5->blocks), error);
	t5->store = smalti_store_new(scope, checkpoint, compute, error);
	if (!t5->blocks || !t5->store) {
		smalti_t5_free(t5);
		return NULL;
	}
	load(t5, checkpoint);
	if (smalti_store_status(t5->store, error) < 0) {
		smalti_t5_free(t5);
		return NULL;
	}
	return t5;
}

void smalti_t5_free(struct smalti_t5 *t5)
{
	if (!t5)
		return;
	smalti_store_free(t5->store);
	free(t5->blocks);
	free(t5);
}

const struct smalti_t5_config *smalti_t5_config(const struct smalti_t5 *t5)
{
	return &t5->config;
}

int64_t smalti_t5_weight_bytes(const struct smalti_t5 *t5)
{
	return smalti_store_bytes(t5->store);
}

/* One encoding under way. */
struct encoding {
	const struct smalti_t5 *t5;
	struct smalti_scope *scope;
	int64_t tokens;
	struct smalti_tile *x, *bias;
};

static struct smalti_tile *rmsnorm(const struct encoding *e, struct smalti_weight *weight,
				   enum smalti_dtype dtype)
{
	const struct smalti_t5_config *c = &e->t5->config;
	struct smalti_tile *y = smalti_tile_new(e->scope, e->tokens, c->width * smalti_dtype_bytes(dtype));
	smalti_insert(rmsnorm, e->scope, (.x = e->x, .weight = smalti_weight_tile(weight), .y = y),
		      .rows = e->tokens, .dim = c->width, .epsilon = (float)c->norm_eps, .dtype = dtype);
	return y;
}

/* x += O(attention(RMS(x))), scores unscaled and with the position bias (2.2, steps 1 to 4). */
static void self_attention(const struct encoding *e, const struct block *b)
{
	const struct smalti_t5_config *c = &e->t5->config;
	const enum smalti_dtype dtype = e->t5->compute;
	struct smalti_tile *h = rmsnorm(e, b->norm1, dtype);
	struct smalti_tile *q =
	    smalti_linear(e->scope, &b->q, e->tokens, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
	struct smalti_tile *kv =
	    smalti_linear(e->scope, &b->kv, e->tokens, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
	struct smalti_tile *o = smalti_tile_new(e->scope, e->tokens, c->inner * smalti_dtype_bytes(dtype));
	smalti_insert(attention, e->scope, (.q = q, .kv = {kv}, .bias = e->bias, .y = o),
		      .queries = e->tokens, .keys = {e->tokens}, .heads = c->heads, .head_dim = c->head_dim,
		      .dtype = dtype, .scale = 1.0f, .bias_reach = e->tokens);
	smalti_linear_add(e->scope, &b->o, e->tokens, dtype, o, e->x);
	smalti_tile_release(h);
	smalti_tile_release(q);
	smalti_tile_release(kv);
	smalti_tile_release(o);
}

/* x += Wo(gelu(W0·n) ⊙ (W1·n)), n = RMS(x) (2.2, step 5). */
static void feed_forward(const struct encoding *e, const struct block *b)
{
	const enum smalti_dtype dtype = e->t5->compute;
	struct smalti_tile *h = rmsnorm(e, b->norm2, dtype);
	struct smalti_tile *gate =
	    smalti_linear(e->scope, &b->wi_0, e->tokens, dtype, h, SMALTI_EPILOGUE_GELU, dtype);
	struct smalti_tile *product =
	    smalti_linear_times(e->scope, &b->wi_1, e->tokens, dtype, h, gate, dtype);
	smalti_linear_add(e->scope, &b->wo, e->tokens, dtype, product, e->x);
	smalti_tile_release(h);
	smalti_tile_release(gate);
	smalti_tile_release(product);
}

static void begin(struct encoding *e, const int32_t *ids)
{
	const struct smalti_t5_config *c = &e->t5->config;
	struct smalti_tile *tokens = smalti_tile_upload(e->scope, e->tokens, sizeof(*ids), ids);
	e->x = smalti_tile_new(e->scope, e->tokens, c->width * (int64_t)sizeof(float));
	smalti_insert(embed_tokens, e->scope,
		      (.ids = tokens, .table = smalti_weight_tile(e->t5->embedding), .y = e->x),
		      .tokens = e->tokens, .dim = c->width, .vocabulary = c->vocabulary,
		      .dtype = e->t5->embedding_dtype);
	smalti_tile_release(tokens);
	e->bias = smalti_tile_new(e->scope, c->heads, (2 * e->tokens - 1) * (int64_t)sizeof(float));
	smalti_insert(relative_bias, e->scope,
		      (.table = smalti_weight_tile(e->t5->relative_bias), .bias = e->bias), .heads = c->heads,
		      .buckets = c->buckets, .max_distance = c->max_distance, .reach = e->tokens);
}

struct smalti_tile *smalti_t5_encode(struct smalti_t5 *t5, struct smalti_scope *scope, const int32_t *ids,
				     int64_t count)
{
	struct encoding e = {.t5 = t5, .scope = scope, .tokens = count};
	begin(&e, ids);
	for (int64_t i = 0; i < t5->config.layers; i++) {
		self_attention(&e, &t5->blocks[i]);
		feed_forward(&e, &t5->blocks[i]);
	}
	struct smalti_tile *y = rmsnorm(&e, t5->final_norm, SMALTI_F32);
	smalti_tile_release(e.x);
	smalti_tile_release(e.bias);
	return y;
}
