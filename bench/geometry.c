/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/geometry.h"

#include "checkpoint/checkpoint.h"
#include "graphs/tensors.h"

#include <string.h>

const struct smalti_component_names smalti_component_names[SMALTI_COMPONENTS] = {
    [SMALTI_TEXT_ENCODER] = {"text_encoder", SMALTI_STEM_T5, "transformers", "T5EncoderModel"},
    [SMALTI_TRANSFORMER] = {"transformer", SMALTI_STEM_DIFFUSERS, "diffusers", "PixArtTransformer2DModel"},
    [SMALTI_VAE] = {"vae", SMALTI_STEM_DIFFUSERS, "diffusers", "AutoencoderKL"},
};

/* The values of most geometries (docs/reference.md 1.3, 1.5, 1.6). */
static const char *const common[SMALTI_COMPONENTS] = {
    [SMALTI_TEXT_ENCODER] =
	"{\"architectures\":[\"T5EncoderModel\"],\"model_type\":\"t5\",\"feed_forward_proj\":\"gated-gelu\","
	"\"num_layers\":24,\"vocab_size\":32128,\"d_model\":4096,\"num_heads\":64,\"d_kv\":64,"
	"\"d_ff\":10240,\"relative_attention_num_buckets\":32,\"relative_attention_max_distance\":128,"
	"\"layer_norm_epsilon\":1e-6,\"dropout_rate\":0.1,\"pad_token_id\":0,\"eos_token_id\":1}",
    [SMALTI_TRANSFORMER] =
	"{\"_class_name\":\"PixArtTransformer2DModel\",\"norm_type\":\"ada_norm_single\","
	"\"activation_fn\":\"gelu-approximate\",\"attention_type\":\"default\",\"dropout\":0,"
	"\"num_layers\":28,\"num_attention_heads\":16,\"attention_head_dim\":72,\"in_channels\":4,"
	"\"out_channels\":8,\"patch_size\":2,\"caption_channels\":4096,\"cross_attention_dim\":1152,"
	"\"attention_bias\":true,\"norm_elementwise_affine\":false,\"norm_eps\":1e-6,"
	"\"num_embeds_ada_norm\":1000,\"upcast_attention\":false}",
    [SMALTI_VAE] =
	"{\"_class_name\":\"AutoencoderKL\",\"act_fn\":\"silu\",\"in_channels\":3,\"out_channels\":3,"
	"\"latent_channels\":4,\"block_out_channels\":[128,256,512,512],\"layers_per_block\":2,"
	"\"norm_num_groups\":32,\"down_block_types\":[\"DownEncoderBlock2D\",\"DownEncoderBlock2D\","
	"\"DownEncoderBlock2D\",\"DownEncoderBlock2D\"],\"up_block_types\":[\"UpDecoderBlock2D\","
	"\"UpDecoderBlock2D\",\"UpDecoderBlock2D\",\"UpDecoderBlock2D\"],\"sample_size\":1024,"
	"\"scaling_factor\":0.13025,\"force_upcast\":false}",
};

#define SIGMA(side, scale)                                                                                   \
	"{\"sample_size\":" #side ",\"interpolation_scale\":" #scale ",\"use_additional_conditions\":false}"

const char *const smalti_geometry_names[SMALTI_GEOMETRIES + 1] = {
    [SMALTI_SIGMA_256] = "sigma-256", [SMALTI_SIGMA_512] = "sigma-512", [SMALTI_SIGMA_1024] = "sigma-1024",
    [SMALTI_SIGMA_2K] = "sigma-2k",   [SMALTI_ALPHA_512] = "alpha-512", [SMALTI_TINY] = "tiny",
};

/* Each geometry's own values, instead of the common ones or beside them. */
static const struct {
	const char *pipeline, *own[SMALTI_COMPONENTS];
} geometries[SMALTI_GEOMETRIES] = {
    [SMALTI_SIGMA_256] = {"PixArtSigmaPipeline", {"{}", SIGMA(32, 0.5), "{}"}},
    [SMALTI_SIGMA_512] = {"PixArtSigmaPipeline", {"{}", SIGMA(64, 1), "{}"}},
    [SMALTI_SIGMA_1024] = {"PixArtSigmaPipeline", {"{}", SIGMA(128, 2), "{}"}},
    [SMALTI_SIGMA_2K] = {"PixArtSigmaPipeline", {"{}", SIGMA(256, 4), "{}"}},
    [SMALTI_ALPHA_512] = {"PixArtAlphaPipeline",
			  {"{}", "{\"sample_size\":64}", "{\"sample_size\":256,\"scaling_factor\":0.18215}"}},
    [SMALTI_TINY] = {"PixArtSigmaPipeline",
		     {"{\"num_layers\":2,\"vocab_size\":384,\"d_model\":32,\"num_heads\":2,\"d_kv\":16,"
		      "\"d_ff\":64}",
		      "{\"num_layers\":2,\"num_attention_heads\":2,\"attention_head_dim\":16,"
		      "\"caption_channels\":32,\"cross_attention_dim\":32,\"sample_size\":8,"
		      "\"interpolation_scale\":1,\"use_additional_conditions\":false}",
		      "{\"block_out_channels\":[8,16,16,16],\"layers_per_block\":1,\"norm_num_groups\":4,"
		      "\"sample_size\":64}"}},
};

const char *smalti_geometry_pipeline(enum smalti_geometry geometry)
{
	return geometries[geometry].pipeline;
}

/* Moves the items of `from` over those of the same key. Frees `from`. */
static bool overlay(cJSON *object, cJSON *from)
{
	cJSON *item;
	bool ok = from;
	while (ok && (item = from->child)) {
		cJSON_DetachItemViaPointer(from, item);
		cJSON_DeleteItemFromObjectCaseSensitive(object, item->string);
		ok = cJSON_AddItemToObject(object, item->string, item);
	}
	cJSON_Delete(from);
	return ok;
}

/* Adds what transformers' config.json tells of the weights beside it. */
static bool describe_t5(cJSON *config, int64_t layers, enum smalti_dtype dtype)
{
	static const char *const names[] = {
	    [SMALTI_F32] = "float32", [SMALTI_F16] = "float16", [SMALTI_BF16] = "bfloat16"};
	if (layers)
		cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(config, "num_layers"), (double)layers);
	return cJSON_AddStringToObject(config, "torch_dtype", names[dtype]);
}

cJSON *smalti_geometry_config(enum smalti_geometry geometry, enum smalti_component component,
			      int64_t t5_layers, enum smalti_dtype dtype, struct smalti_error *error)
{
	const char *own = geometries[geometry].own[component];
	cJSON *config = smalti_json_parse(common[component], strlen(common[component]), error);
	if (!config)
		return NULL;
	bool ok = overlay(config, smalti_json_parse(own, strlen(own), error));
	if (component == SMALTI_TEXT_ENCODER)
		ok = ok && describe_t5(config, t5_layers, dtype);
	if (ok)
		return config;
	cJSON_Delete(config);
	smalti_fail(error, SMALTI_ENOMEM, "out of memory for a configuration");
	return NULL;
}

int smalti_component_inventory(enum smalti_component component, const cJSON *config, enum smalti_dtype dtype,
			       struct smalti_inventory *inventory, struct smalti_error *error)
{
	union {
		struct smalti_t5_config t5;
		struct smalti_transformer_config transformer;
		struct smalti_vae_config vae;
	} parsed;
	switch (component) {
	case SMALTI_TEXT_ENCODER:
		return smalti_t5_config_parse(config, &parsed.t5, error) ||
			       smalti_component_tensors(inventory, SMALTI_TEXT_ENCODER, &parsed.t5, dtype,
							error)
			   ? -1
			   : 0;
	case SMALTI_TRANSFORMER:
		return smalti_transformer_config_parse(config, &parsed.transformer, error) ||
			       smalti_component_tensors(inventory, SMALTI_TRANSFORMER, &parsed.transformer,
							dtype, error)
			   ? -1
			   : 0;
	default:
		return smalti_vae_config_parse(config, &parsed.vae, error) ||
			       smalti_component_tensors(inventory, SMALTI_VAE, &parsed.vae, dtype, error)
			   ? -1
			   : 0;
	}
}
