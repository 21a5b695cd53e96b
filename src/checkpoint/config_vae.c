/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "checkpoint/config.h"

static const char *const classes[] = {"AutoencoderKL", NULL};
static const char *const activations[] = {"silu", "swish", NULL}; /* two names of one function */

#define CONFIG struct smalti_vae_config

static const struct smalti_field fields[] = {
    {FIELD_ONLY("_class_name", OPTIONAL, classes)},
    {FIELD_ONLY("act_fn", OPTIONAL, activations)},
    {FIELD_INT("layers_per_block", OPTIONAL, layers_per_block, 1, 64)},
    {FIELD_ONLY_INT("in_channels", 3, 3)},
    {FIELD_ONLY_INT("out_channels", 3, 3)},
    {FIELD_INT("latent_channels", OPTIONAL, latent_channels, 1, SMALTI_VAE_MAX_LATENT_CHANNELS)},
    {FIELD_INT("norm_num_groups", OPTIONAL, norm_groups, 1, 65536)},
    {FIELD_DOUBLE("scaling_factor", OPTIONAL, scaling_factor, 1e-6, 1e6)},
    {FIELD_BOOL("use_quant_conv", OPTIONAL, quant_conv)},
    {FIELD_BOOL("use_post_quant_conv", OPTIONAL, post_quant_conv)},
    {FIELD_BOOL("mid_block_add_attention", OPTIONAL, mid_block_attention)},
    {FIELD_BOOL("force_upcast", OPTIONAL, force_upcast)},
};

int64_t smalti_vae_factor(const struct smalti_vae_config *config)
{
	return (int64_t)1 << (config->blocks - 1);
}

struct smalti_latent_scale smalti_vae_latent_scale(const struct smalti_vae_config *config, int64_t channel)
{
	if (!config->has_statistics)
		return (struct smalti_latent_scale){1 / config->scaling_factor, config->scaling_factor, 0};
	const double std = config->latents_std[channel];
	return (struct smalti_latent_scale){std / config->scaling_factor, config->scaling_factor / std,
					    config->latents_mean[channel]};
}

/* Reads a number per latent channel; an absent array, or null, changes none. *there tells whether it is
 * there. */
static int read_statistics(const cJSON *file, const char *key, int64_t channels, double min, double *values,
			   bool *there, struct smalti_error *error)
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(file, key), *item;
	char found[64];
	int64_t i = 0;
	*there = array && !cJSON_IsNull(array);
	if (!*there)
		return 0;
	if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != channels)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "\"%s\" should be an array of %lld numbers, one per latent channel, found %s "
		    "with %d",
		    key, (long long)channels, smalti_json_describe(array, found), cJSON_GetArraySize(array));
	cJSON_ArrayForEach (item, array) {
		if (!cJSON_IsNumber(item) || !(item->valuedouble >= min && item->valuedouble <= 1e6))
			return smalti_fail(error, SMALTI_EFORMAT,
					   "\"%s\" should hold numbers from %g to 1e+06, found %s at %lld",
					   key, min, smalti_json_describe(item, found), (long long)i);
		values[i++] = item->valuedouble;
	}
	return 0;
}

/* Reads a shift, as Stable Diffusion 3 and Flux have, or statistics, as some variants of SDXL have; none has
 * both. */
static int read_latent_scale(const cJSON *file, struct smalti_vae_config *config, struct smalti_error *error)
{
	bool has_mean, has_std;
	double shift = 0;
	for (int64_t i = 0; i < config->latent_channels; i++)
		config->latents_std[i] = 1;
	if (smalti_json_double(file, "shift_factor", SMALTI_JSON_NULLABLE, -1e6, 1e6, &shift, error) ||
	    read_statistics(file, "latents_mean", config->latent_channels, -1e6, config->latents_mean,
			    &has_mean, error) ||
	    read_statistics(file, "latents_std", config->latent_channels, 1e-6, config->latents_std, &has_std,
			    error))
		return -1;
	if (has_mean != has_std)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"latents_mean\" and \"latents_std\" belong together, found only \"%s\"",
				   has_mean ? "latents_mean" : "latents_std");
	if (shift != 0 && has_mean)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "\"shift_factor\" is %g beside \"latents_mean\": only one of them can be used", shift);
	for (int64_t i = 0; i < config->latent_channels && shift != 0; i++)
		config->latents_mean[i] = shift;
	config->has_statistics = has_mean || shift != 0;
	return 0;
}

/* Checks that each entry of block_out_channels has one plain convolutional block. */
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
	    .force_upcast = true,
	};
	if (smalti_fields_read(file, fields, COUNT_OF(fields), config, error) ||
	    read_channels(file, config, error) || read_latent_scale(file, config, error) ||
	    check_blocks(file, "down_block_types", "DownEncoderBlock2D", config->blocks, error))
		return -1;
	return check_blocks(file, "up_block_types", "UpDecoderBlock2D", config->blocks, error);
}

CONFIG_READER(smalti_vae_config)
