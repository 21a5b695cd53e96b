/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_encoder_weights.h"

#include <stdio.h>

static void load_down_block(struct smalti_vae_encoder *vae, int block, int64_t in, int64_t out)
{
	const int64_t layers = vae->config.layers_per_block;
	char prefix[64];
	for (int64_t layer = 0; layer < layers; layer++) {
		snprintf(prefix, sizeof(prefix), "encoder.down_blocks.%d.resnets.%lld", block,
			 (long long)layer);
		vae->resnets[block * layers + layer] =
		    smalti_resnet_load(vae->store, layer ? out : in, out, prefix);
	}
	snprintf(prefix, sizeof(prefix), "encoder.down_blocks.%d.downsamplers.0.conv", block);
	if (block < vae->config.blocks - 1)
		vae->downsample[block] = smalti_store_conv(vae->store, out, out, 2, prefix);
}

void smalti_vae_encoder_load(struct smalti_vae_encoder *vae)
{
	const struct smalti_vae_config *c = &vae->config;
	struct smalti_store *store = vae->store;
	const int64_t deepest = c->channels[c->blocks - 1], moments = 2 * c->latent_channels;
	vae->conv_in = smalti_store_conv(store, c->image_channels, c->channels[0], 1, "encoder.conv_in");
	for (int block = 0; block < c->blocks; block++)
		load_down_block(vae, block, c->channels[block ? block - 1 : 0], c->channels[block]);
	vae->mid_block = smalti_mid_block_load(store, c, "encoder");
	vae->norm_out = smalti_store_affine(store, deepest, "encoder.conv_norm_out");
	vae->conv_out = smalti_store_conv(store, deepest, moments, 1, "encoder.conv_out");
	if (c->quant_conv)
		vae->quant_conv = smalti_store_exact_linear(store, (const int64_t[]){moments, moments, 1, 1},
							    4, "quant_conv");
}
