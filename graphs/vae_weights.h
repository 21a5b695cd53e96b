/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_WEIGHTS_H
#define SMALTI_GRAPHS_VAE_WEIGHTS_H

#include "graphs/vae.h"

struct smalti_resnet {
	struct smalti_affine norm1, norm2;
	struct smalti_kernel conv1, conv2;
	struct smalti_linear shortcut; /* empty: the identity */
};

struct smalti_vae_attention {
	struct smalti_affine norm;
	struct smalti_linear q, kv, out;
};

struct smalti_vae_decoder {
	struct smalti_vae_config config;
	enum smalti_dtype compute;
	struct smalti_store *store;
	struct smalti_linear post_quant_conv;
	struct smalti_kernel conv_in;
	struct smalti_resnet mid_resnets[2];
	struct smalti_vae_attention mid_attention;
	struct smalti_resnet *resnets; /* layers_per_block + 1 for each block */
	struct smalti_kernel upsample[SMALTI_VAE_MAX_BLOCKS];
	struct smalti_affine norm_out;
	struct smalti_kernel conv_out;
};

/* Fills all but config, compute and store; errors stay in the store (Appendix A). */
void smalti_vae_decoder_load(struct smalti_vae_decoder *vae);

#endif
