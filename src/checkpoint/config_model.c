/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "checkpoint/config.h"

int smalti_pipeline_tokens(enum smalti_pipeline pipeline)
{
	return pipeline == SMALTI_PIXART_SIGMA ? 300 : 120;
}

/* Checks that a component is absent (the key, or null for its class) or of one of these classes, if there are
 * any. */
static int check_component(const cJSON *file, const char *key, const char *const *classes,
			   struct smalti_error *error)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(file, key);
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2)
		return smalti_fail(error, SMALTI_EFORMAT, "\"%s\" should be [library, class]", key);
	const cJSON *class = cJSON_GetArrayItem(item, 1);
	if (cJSON_IsNull(class))
		return 0;
	bool known = !*classes;
	for (; cJSON_IsString(class) && *classes; classes++)
		known |= !strcmp(class->valuestring, *classes);
	if (known)
		return 0;
	char text[64];
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "the class of \"%s\" is %s, which cannot be run", key,
			   smalti_json_describe(class, text));
}

/* Any scheduler is accepted, as another may be asked for. Any tokenizer class is, too: its files tell whether
 * it can be used. */
static const struct {
	const char *key;
	const char *classes[3];
} components[] = {
    {"text_encoder", {"T5EncoderModel"}},
    {"tokenizer", {NULL}},
    {"transformer", {"PixArtTransformer2DModel", "Transformer2DModel"}},
    {"vae", {"AutoencoderKL"}},
    {"scheduler", {NULL}},
};

int smalti_model_index_parse(const cJSON *file, struct smalti_model_index *index, struct smalti_error *error)
{
	static const char *const pipelines[] = {"PixArtSigmaPipeline", "PixArtAlphaPipeline", NULL};
	int pipeline = 0;
	if (smalti_json_choice(file, "_class_name", SMALTI_JSON_REQUIRED, pipelines, &pipeline, error))
		return -1;
	index->pipeline = (enum smalti_pipeline)pipeline;
	const char *scheduler =
	    cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(file, "scheduler"), 1));
	snprintf(index->scheduler, sizeof(index->scheduler), "%s", scheduler ? scheduler : "");
	for (size_t i = 0; i < COUNT_OF(components); i++)
		if (check_component(file, components[i].key, components[i].classes, error))
			return -1;
	return 0;
}

#define CONFIG struct smalti_model_index
CONFIG_READER(smalti_model_index)

/* Checks the transformer's flag, which the pipelines ignore (1.3, second trap): alpha feeds the embedders
 * when the native side is 128, sigma never does. */
static int check_conditions(const struct smalti_model_index *index,
			    const struct smalti_transformer_config *transformer, struct smalti_error *error)
{
	if (!transformer->additional_conditions ||
	    (index->pipeline == SMALTI_PIXART_ALPHA && transformer->sample_size == 128))
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "the transformer wants micro-conditions, which %s does not give it: set "
			   "\"use_additional_conditions\" in its config.json to false",
			   index->pipeline == SMALTI_PIXART_ALPHA
			       ? "the alpha pipeline (unless its sample_size is 128)"
			       : "the sigma pipeline");
}

int smalti_model_check(const struct smalti_model_index *index,
		       const struct smalti_transformer_config *transformer,
		       const struct smalti_vae_config *vae, const struct smalti_t5_config *t5,
		       struct smalti_error *error)
{
	int64_t caption = transformer->caption_channels ? transformer->caption_channels : transformer->width;
	if (vae->latent_channels != transformer->in_channels)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "the vae has %lld latent channels, the transformer takes %lld: they do not "
		    "belong together",
		    (long long)vae->latent_channels, (long long)transformer->in_channels);
	if (t5->width != caption)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "the text encoder gives %lld channels, the transformer takes %lld: they do "
		    "not belong together",
		    (long long)t5->width, (long long)caption);
	return check_conditions(index, transformer, error);
}
