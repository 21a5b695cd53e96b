/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_decoder_weights.h"

#include <stdio.h>

static void load_up_block(struct smalti_vae_decoder *vae, int block, int64_t in, int64_t out)
{
	const int64_t layers = vae->config.layers_per_block + 1;
	char prefix[64];
	for (int64_t layer = 0; layer < layers; layer++) {
		snprintf(prefix, sizeof(prefix), "decoder.up_blocks.%d.resnets.%lld", block,
			 (long long)layer);
		vae->resnets[block * layers + layer] =
		    smalti_resnet_load(vae->store, layer ? out : in, out, prefix);
	}
	snprintf(prefix, sizeof(prefix), "decoder.up_blocks.%d.upsamplers.0.conv", block);
	if (block < vae->config.blocks - 1)
		vae->upsample[block] = smalti_store_conv(vae->store, out, out, 1, prefix);
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
	vae->conv_in = smalti_store_conv(store, c->latent_channels, deepest, 1, "decoder.conv_in");
	vae->mid_block = smalti_mid_block_load(store, c, "decoder");
	int64_t in = deepest;
	for (int block = 0; block < c->blocks; block++) {
		int64_t out = c->channels[c->blocks - 1 - block];
		load_up_block(vae, block, in, out);
		in = out;
	}
	vae->norm_out = smalti_store_affine(store, shallowest, "decoder.conv_norm_out");
	vae->conv_out = smalti_store_conv(store, shallowest, c->image_channels, 1, "decoder.conv_out");
}
