/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/weights.h"
#include "kernels/conditioning.h"

static const char *const only[3] = {""};

static struct smalti_linear load_linear(struct smalti_dit *dit, int64_t in, int64_t out, const char *prefix)
{
	return smalti_weights_linear(dit->denoiser.weights, in, out, true, prefix, only);
}

/* Loads conditions, always in f32: they are small and influence every token. */
static struct smalti_linear load_exact(struct smalti_dit *dit, int64_t in, int64_t out, const char *prefix)
{
	return smalti_weights_reshaped(dit->denoiser.weights, (const int64_t[]){out, in}, 2, SMALTI_F32,
				       prefix);
}

static struct smalti_dit_embedder load_embedder(struct smalti_dit *dit, int64_t width, const char *name)
{
	char prefix[96];
	struct smalti_dit_embedder embedder;
	snprintf(prefix, sizeof(prefix), "adaln_single.emb.%s.linear_1", name);
	embedder.linear_1 = load_exact(dit, SMALTI_SINUSOID_SIZE, width, prefix);
	snprintf(prefix, sizeof(prefix), "adaln_single.emb.%s.linear_2", name);
	embedder.linear_2 = load_exact(dit, width, width, prefix);
	return embedder;
}

static struct smalti_dit_attention load_attention(struct smalti_dit *dit, int64_t block, const char *name)
{
	const int64_t width = dit->config.width;
	const bool bias = dit->config.attention_bias;
	char prefix[96];
	const char *const q[3] = {"to_q"}, *const kv[3] = {"to_k", "to_v"};
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld.%s.", (long long)block, name);
	struct smalti_dit_attention attention;
	attention.q = smalti_weights_linear(dit->denoiser.weights, width, width, bias, prefix, q);
	attention.kv = smalti_weights_linear(dit->denoiser.weights, width, 2 * width, bias, prefix, kv);
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld.%s.to_out.0", (long long)block, name);
	attention.out = load_linear(dit, width, width, prefix);
	return attention;
}

static void load_block(struct smalti_dit *dit, int64_t i)
{
	enum { MLP_RATIO = 4 };
	struct smalti_dit_block *block = &dit->blocks[i];
	const int64_t width = dit->config.width;
	char prefix[96];
	dit->denoiser.weights->bears_w8a8 = true;
	block->self = load_attention(dit, i, "attn1");
	block->cross = load_attention(dit, i, "attn2");
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld.ff.net.0.proj", (long long)i);
	block->ff_in = load_linear(dit, width, MLP_RATIO * width, prefix);
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld.ff.net.2", (long long)i);
	block->ff_out = load_linear(dit, MLP_RATIO * width, width, prefix);
	dit->denoiser.weights->bears_w8a8 = false;
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld.scale_shift_table", (long long)i);
	if (dit->denoiser.weights->parameters)
		block->table = smalti_weights_rows(dit->denoiser.weights, 6, width, prefix);
}

/* Training rounds the patches' products as it does the others; for images they stay f32. */
void smalti_dit_load_patch(struct smalti_dit *dit, struct smalti_weights *weights)
{
	const struct smalti_transformer_config *c = &dit->config;
	dit->patch = smalti_weights_reshaped(
	    weights, (const int64_t[]){c->width, c->in_channels, c->patch_size, c->patch_size}, 4,
	    weights->parameters ? dit->compute : SMALTI_F32, "pos_embed.proj");
}

int smalti_dit_load(struct smalti_dit *dit, struct smalti_error *error)
{
	const struct smalti_transformer_config *c = &dit->config;
	struct smalti_weights *weights = dit->denoiser.weights;
	const bool trains = weights->parameters;
	smalti_dit_load_patch(dit, weights);
	dit->timestep = load_embedder(dit, c->width, "timestep_embedder");
	if (c->additional_conditions) {
		dit->resolution = load_embedder(dit, c->width / 3, "resolution_embedder");
		dit->aspect_ratio = load_embedder(dit, c->width / 3, "aspect_ratio_embedder");
	}
	dit->adaln = load_exact(dit, c->width, 6 * c->width, "adaln_single.linear");
	if (c->caption_channels) {
		dit->caption.linear_1 =
		    load_linear(dit, c->caption_channels, c->width, "caption_projection.linear_1");
		dit->caption.linear_2 = load_linear(dit, c->width, c->width, "caption_projection.linear_2");
	}
	if (!trains)
		dit->block_tables = smalti_weights_stack(weights, c->layers, 6, c->width,
							 "transformer_blocks.%d.scale_shift_table");
	for (int64_t i = 0; i < c->layers; i++)
		load_block(dit, i);
	dit->final_table = smalti_weights_rows(weights, 2, c->width, "scale_shift_table");
	dit->out = load_linear(dit, c->width, c->patch_size * c->patch_size * c->out_channels, "proj_out");
	return smalti_weights_status(weights, error);
}
