/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"

static const char *const classes[] = {"PixArtTransformer2DModel", "Transformer2DModel", NULL};
static const char *const norms[] = {"ada_norm_single", NULL};
static const char *const activations[] = {"gelu-approximate", NULL};
static const char *const attentions[] = {"default", NULL};

#define CONFIG struct smalti_transformer_config

static const struct smalti_field fields[] = {
    {FIELD_ONLY("_class_name", OPTIONAL, classes)},
    {FIELD_ONLY("norm_type", OPTIONAL, norms)},
    {FIELD_ONLY("activation_fn", OPTIONAL, activations)},
    {FIELD_ONLY("attention_type", OPTIONAL, attentions)},
    {FIELD_FALSE("norm_elementwise_affine")},
    {FIELD_INT("num_layers", OPTIONAL, layers, 1, 1000)},
    {FIELD_INT("num_attention_heads", OPTIONAL, heads, 1, 1024)},
    {FIELD_INT("attention_head_dim", OPTIONAL, head_dim, 1, 1024)},
    {FIELD_INT("in_channels", OPTIONAL, in_channels, 1, 1024)},
    {FIELD_INT("out_channels", NULLABLE, out_channels, 1, 2048)},
    {FIELD_INT("patch_size", OPTIONAL, patch_size, 1, 64)},
    {FIELD_INT("sample_size", OPTIONAL, sample_size, 1, 65536)},
    {FIELD_INT("caption_channels", NULLABLE, caption_channels, 1, 65536)},
    {FIELD_DOUBLE("interpolation_scale", NULLABLE, interpolation_scale, 1e-3, 1e3)},
    {FIELD_DOUBLE("norm_eps", OPTIONAL, norm_eps, 1e-30, 1)},
    {FIELD_BOOL("attention_bias", OPTIONAL, attention_bias)},
    {FIELD_BOOL("use_additional_conditions", NULLABLE, additional_conditions)},
    {FIELD_ONLY_INT("num_embeds_ada_norm", 1, 1000000)},
};

/* Sets what depends on several keys (1.3). */
static void infer(const cJSON *file, struct smalti_transformer_config *config)
{
	const cJSON *conditions = cJSON_GetObjectItemCaseSensitive(file, "use_additional_conditions");
	if (!cJSON_IsBool(conditions))
		config->additional_conditions = config->sample_size == 128;
	int64_t whole_scale = config->sample_size / 64;
	if (!config->interpolation_scale)
		config->interpolation_scale = whole_scale > 1 ? (double)whole_scale : 1;
	if (!config->out_channels)
		config->out_channels = config->in_channels;
	config->width = config->heads * config->head_dim;
}

static int check_extents(const struct smalti_transformer_config *c, int64_t cross_width,
			 struct smalti_error *error)
{
	if (c->sample_size % c->patch_size)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"sample_size\" %lld is not a multiple of \"patch_size\" %lld",
				   (long long)c->sample_size, (long long)c->patch_size);
	if (c->out_channels != c->in_channels && c->out_channels != 2 * c->in_channels)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"out_channels\" %lld is neither once nor twice \"in_channels\" %lld",
				   (long long)c->out_channels, (long long)c->in_channels);
	if (c->width % 4 || (c->additional_conditions && c->width % 3))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "the width, \"num_attention_heads\" × \"attention_head_dim\" = %lld, is not "
		    "a multiple of %d",
		    (long long)c->width, c->width % 4 ? 4 : 3);
	if (cross_width != c->width)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"cross_attention_dim\" is %lld, the width of the model is %lld",
				   (long long)cross_width, (long long)c->width);
	return 0;
}

/* Checks that the old class has norm_type, which alone makes it PixArt's: its default differs there. */
static int check_old_class(const cJSON *file, struct smalti_error *error)
{
	const cJSON *class = cJSON_GetObjectItemCaseSensitive(file, "_class_name");
	if (cJSON_IsString(class) && !strcmp(class->valuestring, "Transformer2DModel") &&
	    !cJSON_GetObjectItemCaseSensitive(file, "norm_type"))
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "a Transformer2DModel without \"norm_type\": \"ada_norm_single\" is not PixArt");
	return 0;
}

int smalti_transformer_config_parse(const cJSON *file, struct smalti_transformer_config *config,
				    struct smalti_error *error)
{
	*config = (struct smalti_transformer_config){
	    .layers = 28,
	    .heads = 16,
	    .head_dim = 72,
	    .in_channels = 4,
	    .out_channels = cJSON_GetObjectItemCaseSensitive(file, "out_channels") ? 0 : 8,
	    .patch_size = 2,
	    .sample_size = 128,
	    .norm_eps = 1e-6,
	    .attention_bias = true,
	};
	int64_t cross_width = 1152;
	if (smalti_fields_read(file, fields, COUNT_OF(fields), config, error) ||
	    smalti_json_int(file, "cross_attention_dim", SMALTI_JSON_OPTIONAL, 1, 1 << 20, &cross_width,
			    error) ||
	    check_old_class(file, error))
		return -1;
	infer(file, config);
	return check_extents(config, cross_width, error);
}

CONFIG_READER(smalti_transformer_config)

/* Weights of variants in research code only (1.3): qk-norm and KV compression. */
static const char *const foreign[] = {
    "transformer_blocks.0.attn1.q_norm.weight",
    "transformer_blocks.0.attn1.k_norm.weight",
    "transformer_blocks.0.attn1.sr.weight",
};

int smalti_transformer_config_check(const struct smalti_transformer_config *config,
				    const struct smalti_checkpoint *weights, struct smalti_error *error)
{
	if (weights->record)
		return 0;
	bool there = smalti_checkpoint_has(weights, "adaln_single.emb.resolution_embedder.linear_1.weight");
	if (there != config->additional_conditions)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "the transformer's weights %s resolution embedders, but its config.json %s: "
		    "set \"use_additional_conditions\" there to %s",
		    there ? "have" : "have no", there ? "denies them" : "implies them",
		    there ? "true" : "false");
	for (size_t i = 0; i < COUNT_OF(foreign); i++)
		if (smalti_checkpoint_has(weights, foreign[i]))
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "the transformer has the tensor %s, which "
					   "no supported model has",
					   foreign[i]);
	return 0;
}
