/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_DECODER_WEIGHTS_H
#define SMALTI_GRAPHS_VAE_DECODER_WEIGHTS_H

#include "graphs/vae_blocks.h"
#include "graphs/vae_decoder.h"

struct smalti_vae_decoder {
	struct smalti_vae_config config;
	enum smalti_dtype compute;
	struct smalti_store *store;
	struct smalti_linear post_quant_conv;
	struct smalti_kernel conv_in;
	struct smalti_mid_block mid_block;
	struct smalti_resnet *resnets; /* layers_per_block + 1 for each block */
	struct smalti_kernel upsample[SMALTI_VAE_MAX_BLOCKS];
	struct smalti_affine norm_out;
	struct smalti_kernel conv_out;
};

/* Fills all but config, compute and store; errors stay in the store (Appendix A). */
void smalti_vae_decoder_load(struct smalti_vae_decoder *vae);

#endif
