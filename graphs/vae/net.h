/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/weights.h"

/* The decoder or the encoder of a VAE as the list of its layers (docs/reference.md 5.1 to 5.3). Map 0 is its
 * input, and layer i makes map i + 1 from map i. Planning and running a net read nothing else. */

enum smalti_vae_direction {
	SMALTI_VAE_DECODE, /* latents [h, w, latent_channels] to pixels */
	SMALTI_VAE_ENCODE  /* pixels to mean and logarithm of the variance of latents; the input comes once */
};
enum { SMALTI_VAE_DIRECTIONS = SMALTI_VAE_ENCODE + 1 };

enum smalti_vae_layer_kind {
	SMALTI_VAE_CONV,      /* conv(f(x)) + b; f: nothing, GroupNorm and SiLU, or nearest ×2 */
	SMALTI_VAE_RESIDUAL,  /* conv(f(x)) + b + shortcut(map i − 1): the end of a resnet */
	SMALTI_VAE_ATTENTION, /* x + attention(GroupNorm(x)), one head over all positions */
	SMALTI_VAE_LINEAR     /* a 1×1 convolution */
};

enum { SMALTI_VAE_NAME_LENGTH = 96 };

struct smalti_vae_layer {
	enum smalti_vae_layer_kind kind;
	char name[SMALTI_VAE_NAME_LENGTH]; /* in the checkpoint */
	struct smalti_affine norm;         /* empty: none */
	bool upsample;
	struct smalti_kernel kernel;     /* CONV, RESIDUAL */
	struct smalti_linear linear;     /* LINEAR, or the shortcut of a RESIDUAL; empty: the identity */
	struct smalti_linear q, kv, out; /* ATTENTION */
};

/* A map's extents: [rows·up/down, width·up/down, channels] of an input of [rows, width]. */
struct smalti_vae_shape {
	int64_t channels, up, down;
};

struct smalti_vae_net {
	enum smalti_vae_direction direction;
	struct smalti_vae_config config;
	enum smalti_dtype compute;
	struct smalti_weights *weights;
	int count;
	struct smalti_vae_layer *layer; /* count */
	struct smalti_vae_shape *map;   /* count + 1 */
};

/* Makes a net, its weights by tasks of `task_group`. Those of a large decoder are transient
 * (graphs/weights.h). NULL with an error. */
struct smalti_vae_net *smalti_vae_net_new(enum smalti_vae_direction direction,
					  struct smalti_task_group *task_group,
					  const struct smalti_vae_config *config,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error);
void smalti_vae_net_free(struct smalti_vae_net *net); /* NULL is fine */

/* Returns the groups over which the reader of map `map` normalises it; 0: it does not. */
int64_t smalti_vae_map_groups(const struct smalti_vae_net *net, int map);
/* Returns the flops of a layer for an input of so many positions, or of all layers. */
double smalti_vae_layer_flops(const struct smalti_vae_net *net, int layer, double input_pixels);
double smalti_vae_net_flops(const struct smalti_vae_net *net, double input_pixels);
