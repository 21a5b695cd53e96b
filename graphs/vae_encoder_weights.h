/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_ENCODER_WEIGHTS_H
#define SMALTI_GRAPHS_VAE_ENCODER_WEIGHTS_H

#include "graphs/vae_blocks.h"
#include "graphs/vae_encoder.h"

struct smalti_vae_encoder {
	struct smalti_vae_config config;
	enum smalti_dtype compute;
	struct smalti_store *store;
	struct smalti_kernel conv_in;
	struct smalti_resnet *resnets; /* layers_per_block for each block */
	struct smalti_kernel downsample[SMALTI_VAE_MAX_BLOCKS];
	struct smalti_mid_block mid_block;
	struct smalti_affine norm_out;
	struct smalti_kernel conv_out;
	struct smalti_linear quant_conv; /* empty: none */
};

/* Fills all but config, compute and store; errors stay in the store (Appendix A). */
void smalti_vae_encoder_load(struct smalti_vae_encoder *vae);

#endif
