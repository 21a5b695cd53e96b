/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "samplers/config.h"

/* The JSON files of a diffusers directory, as numbers that later code can trust. Each extent is at least 1;
 * the product of any two and the number of layers fits 64 bits. A value that would change the image in a way
 * that is not implemented is SMALTI_EUNSUPPORTED, never ignored. Unknown keys are ignored; missing ones take
 * the defaults of docs/reference.md 1.3 to 1.7 and 4.1. */

enum smalti_pipeline { SMALTI_PIXART_SIGMA, SMALTI_PIXART_ALPHA };

/* model_index.json (1.1) */
struct smalti_model_index {
	enum smalti_pipeline pipeline;
	char scheduler[128]; /* its class, "": the file names none */
};

/* Returns the longest caption in tokens, with its end-of-sentence: 300 (sigma), 120 (alpha); 2.1. */
int smalti_pipeline_tokens(enum smalti_pipeline pipeline);

/* transformer/config.json (1.3) */
struct smalti_transformer_config {
	int64_t layers;
	int64_t heads;
	int64_t head_dim;
	int64_t width; /* heads · head_dim, a multiple of 4 */
	int64_t in_channels;
	int64_t out_channels;
	int64_t patch_size;
	int64_t sample_size;      /* native side of the latent, a multiple of patch_size */
	int64_t caption_channels; /* 0: no caption projection */
	double interpolation_scale;
	double norm_eps;
	bool attention_bias;        /* of q, k, v; the output projection always has one */
	bool additional_conditions; /* resolution and aspect ratio embedders; width is a multiple of 3 */
};

enum { SMALTI_VAE_MAX_BLOCKS = 8, SMALTI_VAE_MAX_LATENT_CHANNELS = 1024 };

/* vae/config.json (1.5) */
struct smalti_vae_config {
	int blocks;
	int64_t channels[SMALTI_VAE_MAX_BLOCKS]; /* block_out_channels, each a multiple of norm_groups */
	int64_t layers_per_block;
	int64_t image_channels; /* in_channels and out_channels: 3 */
	int64_t latent_channels;
	int64_t norm_groups;
	double scaling_factor;
	bool has_statistics; /* the next two are used; else they are 0 and 1 */
	/* latents_mean, or shift_factor for every channel; latents_std */
	double latents_mean[SMALTI_VAE_MAX_LATENT_CHANNELS], latents_std[SMALTI_VAE_MAX_LATENT_CHANNELS];
	bool quant_conv;
	bool post_quant_conv;
	bool mid_block_attention;
	bool force_upcast; /* its activations exceed f16 */
};

/* The VAE's latents of a channel are z = scale·y + shift for the diffusion model's y, and y = inverse·(z −
 * shift): diffusers' pipelines have y = scaling_factor·(z − mean)/std. */
struct smalti_latent_scale {
	double scale, inverse, shift;
};
struct smalti_latent_scale smalti_vae_latent_scale(const struct smalti_vae_config *config, int64_t channel);

/* Returns the pixels per latent along an axis: 2^(blocks - 1). */
int64_t smalti_vae_factor(const struct smalti_vae_config *config);

/* text_encoder/config.json (1.6); only the gated GELU (tanh) feed-forward is accepted */
struct smalti_t5_config {
	int64_t layers;
	int64_t vocabulary;
	int64_t width; /* d_model */
	int64_t heads;
	int64_t head_dim; /* d_kv */
	int64_t inner;    /* heads · head_dim */
	int64_t ff_width; /* d_ff */
	int64_t buckets;  /* relative_attention_num_buckets, even, at least 4 */
	int64_t max_distance;
	double norm_eps;
	int64_t pad_id, eos_id;
};

/* Read one file each; messages name it. */
int smalti_model_index_read(const char *path, struct smalti_model_index *index, struct smalti_error *error);
int smalti_transformer_config_read(const char *path, struct smalti_transformer_config *config,
				   struct smalti_error *error);
int smalti_vae_config_read(const char *path, struct smalti_vae_config *config, struct smalti_error *error);
int smalti_t5_config_read(const char *path, struct smalti_t5_config *config, struct smalti_error *error);
/* Reads the scheduler of that class (NULL: the class in the file), with the file's values; the file may name
 * another known class. Returns 0 for a scheduler that cannot be run, as another may be asked for: `unusable`
 * says why. */
int smalti_scheduler_config_read(const char *path, const char *class, struct smalti_scheduler_config *config,
				 struct smalti_error *unusable, struct smalti_error *error);
/* Reads the file for another scheduler, as from_config() (4.4): keys of the same name carry over, the others
 * take that scheduler's defaults. */
int smalti_scheduler_config_read_as(const char *path, enum smalti_scheduler scheduler,
				    struct smalti_scheduler_config *config, struct smalti_error *error);

/* Read a component's configuration beside its open weights: config.json, or the metadata of a GGUF file where
 * that has none. Where T5 has both they have to agree. `component` is the directory, or the GGUF file. */
struct smalti_checkpoint;
int smalti_t5_config_open(const char *component, const struct smalti_checkpoint *weights,
			  struct smalti_t5_config *config, struct smalti_error *error);
int smalti_transformer_config_open(const char *component, const struct smalti_checkpoint *weights,
				   struct smalti_transformer_config *config, struct smalti_error *error);

/* Read parsed objects likewise. */
int smalti_model_index_parse(const cJSON *file, struct smalti_model_index *index, struct smalti_error *error);
int smalti_transformer_config_parse(const cJSON *file, struct smalti_transformer_config *config,
				    struct smalti_error *error);
int smalti_vae_config_parse(const cJSON *file, struct smalti_vae_config *config, struct smalti_error *error);
int smalti_t5_config_parse(const cJSON *file, struct smalti_t5_config *config, struct smalti_error *error);
int smalti_scheduler_config_parse(const cJSON *file, const char *class,
				  struct smalti_scheduler_config *config, struct smalti_error *error);
int smalti_scheduler_config_parse_as(const cJSON *file, enum smalti_scheduler scheduler,
				     struct smalti_scheduler_config *config, struct smalti_error *error);

/* Checks that the components fit each other: their channels, and the micro-conditions that the pipeline gives
 * (1.3, second trap). */
int smalti_model_check(const struct smalti_model_index *index,
		       const struct smalti_transformer_config *transformer,
		       const struct smalti_vae_config *vae, const struct smalti_t5_config *t5,
		       struct smalti_error *error);

/* Checks that the weights fit the file: they have resolution embedders exactly when additional_conditions is
 * set (1.3, trap), and no tensors of unsupported variants. */
int smalti_transformer_config_check(const struct smalti_transformer_config *config,
				    const struct smalti_checkpoint *weights, struct smalti_error *error);
