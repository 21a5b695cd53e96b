/* SPDX-License-Identifier: Apache-2.0 */
#include "io/config.h"
#include "io/fields.h"

#include <string.h>

static const char *const classes[] = {"AutoencoderKL", NULL};
static const char *const activations[] = {"silu", "swish", NULL}; /* two names of one function */

#define CONFIG struct smalti_vae_config

static const struct smalti_field fields[] = {
    FIELD_ONLY("_class_name", OPTIONAL, classes),
    FIELD_ONLY("act_fn", OPTIONAL, activations),
    FIELD_INT("layers_per_block", OPTIONAL, layers_per_block, 1, 64),
    FIELD_ONLY_INT("in_channels", 3, 3),
    FIELD_ONLY_INT("out_channels", 3, 3),
    FIELD_INT("latent_channels", OPTIONAL, latent_channels, 1, 1024),
    FIELD_INT("norm_num_groups", OPTIONAL, norm_groups, 1, 65536),
    FIELD_DOUBLE("scaling_factor", OPTIONAL, scaling_factor, 1e-6, 1e6),
    FIELD_BOOL("use_quant_conv", OPTIONAL, quant_conv),
    FIELD_BOOL("use_post_quant_conv", OPTIONAL, post_quant_conv),
    FIELD_BOOL("mid_block_add_attention", OPTIONAL, mid_block_attention),
};

int64_t smalti_vae_factor(const struct smalti_vae_config *config)
{
	return (int64_t)1 << (config->blocks - 1);
}

/* One plain convolutional block per entry of block_out_channels. */
static int check_blocks(const cJSON *file, const char *key, const char *kind, int blocks,
			struct smalti_error *error)
{
	const char *types[SMALTI_VAE_MAX_BLOCKS] = {kind};
	int count = 1;
	if (smalti_json_strings(file, key, SMALTI_JSON_OPTIONAL, SMALTI_VAE_MAX_BLOCKS, types, &count, error))
		return -1;
	if (count != blocks)
		return smalti_fail(error, SMALTI_EFORMAT, "\"%s\" has %d entries, \"block_out_channels\" %d",
				   key, count, blocks);
	for (int i = 0; i < count; i++)
		if (strcmp(types[i], kind))
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "\"%s\" has \"%.100s\", only \"%s\" can be used", key, types[i],
					   kind);
	return 0;
}

static int read_channels(const cJSON *file, struct smalti_vae_config *config, struct smalti_error *error)
{
	if (smalti_json_ints(file, "block_out_channels", SMALTI_JSON_OPTIONAL, 1, 65536,
			     SMALTI_VAE_MAX_BLOCKS, config->channels, &config->blocks, error))
		return -1;
	for (int i = 0; i < config->blocks; i++)
		if (config->channels[i] % config->norm_groups)
			return smalti_fail(
			    error, SMALTI_EFORMAT,
			    "\"block_out_channels\" has %lld, which \"norm_num_groups\" %lld does "
			    "not divide",
			    (long long)config->channels[i], (long long)config->norm_groups);
	return 0;
}

int smalti_vae_config_parse(const cJSON *file, struct smalti_vae_config *config, struct smalti_error *error)
{
	*config = (struct smalti_vae_config){
	    .blocks = 1,
	    .channels = {64},
	    .layers_per_block = 1,
	    .image_channels = 3,
	    .latent_channels = 4,
	    .norm_groups = 32,
	    .scaling_factor = 0.18215,
	    .quant_conv = true,
	    .post_quant_conv = true,
	    .mid_block_attention = true,
	};
	if (smalti_fields_read(file, fields, sizeof(fields) / sizeof(fields[0]), config, error) ||
	    read_channels(file, config, error) ||
	    check_blocks(file, "down_block_types", "DownEncoderBlock2D", config->blocks, error))
		return -1;
	return check_blocks(file, "up_block_types", "UpDecoderBlock2D", config->blocks, error);
}

int smalti_vae_config_read(const char *path, struct smalti_vae_config *config, struct smalti_error *error)
{
	cJSON *file = smalti_config_open(path, error);
	int status = file ? smalti_vae_config_parse(file, config, error) : -1;
	return smalti_config_close(file, path, status, error);
}
