/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_BLOCKS_H
#define SMALTI_GRAPHS_VAE_BLOCKS_H

#include "graphs/features.h"
#include "graphs/weights.h"
#include "io/config.h"

/* What both halves of the VAE are made of (specification 5.1): resnets, the middle with its attention. */

struct smalti_resnet {
	struct smalti_affine norm1, norm2;
	struct smalti_kernel conv1, conv2;
	struct smalti_linear shortcut; /* empty: the identity */
};

struct smalti_vae_attention {
	struct smalti_affine norm;
	struct smalti_linear q, kv, out;
};

struct smalti_mid_block {
	struct smalti_resnet resnets[2];
	struct smalti_vae_attention attention; /* empty: none */
};

/* A map's way through a half; `map` is where it has come to. What follows replaces it. */
struct smalti_vae_pass {
	const struct smalti_vae_config *config;
	enum smalti_dtype compute;
	struct smalti_scope *scope;
	struct smalti_features map;
};

/* Errors stay in the store. */
struct smalti_resnet smalti_resnet_load(struct smalti_store *store, int64_t in, int64_t out,
					const char *prefix);
/* `half`: "encoder" or "decoder". */
struct smalti_mid_block smalti_mid_block_load(struct smalti_store *store,
					      const struct smalti_vae_config *config, const char *half);

/* The input of a convolution after GroupNorm and SiLU. */
struct smalti_conv_input smalti_vae_normalised(const struct smalti_vae_pass *pass,
					       const struct smalti_affine *norm);
/* The map becomes conv(f(map)), with statistics over y_groups (0: none). */
void smalti_vae_conv(struct smalti_vae_pass *pass, const struct smalti_conv_input *input,
		     const struct smalti_kernel *kernel, int64_t y_groups);
/* The map becomes a 1×1 convolution of it: edges and statistics are not made. */
void smalti_vae_linear(struct smalti_vae_pass *pass, const struct smalti_linear *linear);
void smalti_vae_resnet(struct smalti_vae_pass *pass, const struct smalti_resnet *resnet);
/* resnet, attention, resnet */
void smalti_vae_mid_block(struct smalti_vae_pass *pass, const struct smalti_mid_block *block);

/* The arithmetic of its parts, on maps of that many pixels. */
double smalti_vae_resnet_flops(double pixels, int64_t in, int64_t out);
double smalti_vae_mid_block_flops(const struct smalti_vae_config *config, double pixels);

/* The most that a resnet on a map [height, width] in bands of `band_rows` holds over `workers`. */
int64_t smalti_vae_resnet_bytes(int64_t height, int64_t width, int64_t in, int64_t out, int64_t band_rows,
				int workers);

#endif
