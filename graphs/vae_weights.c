/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_weights.h"

#include <stdio.h>

enum { NAME_LENGTH = 128 };

/* A name below `prefix`, in a buffer of the caller. */
static const char *below(char name[NAME_LENGTH], const char *prefix, const char *suffix)
{
	snprintf(name, NAME_LENGTH, "%s%s", prefix, suffix);
	return name;
}

static struct smalti_resnet load_resnet(struct smalti_store *store, int64_t in, int64_t out,
					const char *prefix)
{
	char name[NAME_LENGTH];
	struct smalti_resnet resnet = {
	    .norm1 = smalti_store_affine(store, in, below(name, prefix, ".norm1")),
	    .conv1 = smalti_store_conv(store, in, out, below(name, prefix, ".conv1")),
	    .norm2 = smalti_store_affine(store, out, below(name, prefix, ".norm2")),
	    .conv2 = smalti_store_conv(store, out, out, below(name, prefix, ".conv2")),
	};
	if (in != out)
		resnet.shortcut =
		    smalti_store_linear_1x1(store, in, out, below(name, prefix, ".conv_shortcut"));
	return resnet;
}

static struct smalti_vae_attention load_attention(struct smalti_store *store, int64_t channels,
						  const char *prefix)
{
	char name[NAME_LENGTH];
	const char *const q[3] = {"to_q"}, *const kv[3] = {"to_k", "to_v"}, *const out[3] = {"to_out.0"};
	return (struct smalti_vae_attention){
	    .norm = smalti_store_affine(store, channels, below(name, prefix, "group_norm")),
	    .q = smalti_store_linear(store, channels, channels, true, prefix, q),
	    .kv = smalti_store_linear(store, channels, 2 * channels, true, prefix, kv),
	    .out = smalti_store_linear(store, channels, channels, true, prefix, out),
	};
}

static void load_up_block(struct smalti_vae_decoder *vae, int block, int64_t in, int64_t out)
{
	const int64_t layers = vae->config.layers_per_block + 1;
	char prefix[64];
	for (int64_t layer = 0; layer < layers; layer++) {
		snprintf(prefix, sizeof(prefix), "decoder.up_blocks.%d.resnets.%lld", block,
			 (long long)layer);
		vae->resnets[block * layers + layer] = load_resnet(vae->store, layer ? out : in, out, prefix);
	}
	snprintf(prefix, sizeof(prefix), "decoder.up_blocks.%d.upsamplers.0.conv", block);
	if (block < vae->config.blocks - 1)
		vae->upsample[block] = smalti_store_conv(vae->store, out, out, prefix);
}

void smalti_vae_decoder_load(struct smalti_vae_decoder *vae)
{
	const struct smalti_vae_config *c = &vae->config;
	struct smalti_store *store = vae->store;
	const int64_t deepest = c->channels[c->blocks - 1], shallowest = c->channels[0];
	if (c->post_quant_conv)
		vae->post_quant_conv = smalti_store_exact_linear(
		    store, (const int64_t[]){c->latent_channels, c->latent_channels, 1, 1}, 4,
		    "post_quant_conv");
	vae->conv_in = smalti_store_conv(store, c->latent_channels, deepest, "decoder.conv_in");
	vae->mid_resnets[0] = load_resnet(store, deepest, deepest, "decoder.mid_block.resnets.0");
	if (c->mid_block_attention)
		vae->mid_attention = load_attention(store, deepest, "decoder.mid_block.attentions.0.");
	vae->mid_resnets[1] = load_resnet(store, deepest, deepest, "decoder.mid_block.resnets.1");
	int64_t in = deepest;
	for (int block = 0; block < c->blocks; block++) {
		int64_t out = c->channels[c->blocks - 1 - block];
		load_up_block(vae, block, in, out);
		in = out;
	}
	vae->norm_out = smalti_store_affine(store, shallowest, "decoder.conv_norm_out");
	vae->conv_out = smalti_store_conv(store, shallowest, c->image_channels, "decoder.conv_out");
}
