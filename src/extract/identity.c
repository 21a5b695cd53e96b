/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/parts.h"
#include "jobs/precision.h"
#include "kernels/isa.h"
#include "text/cleaning.h"

const char *const smalti_fittings[] = {
    [SMALTI_FITTING_COVER] = "cover", [SMALTI_FITTING_STRETCH] = "stretch", NULL};

static bool fill_list(cJSON *list, const struct smalti_dataset_digests *digests)
{
	char keys[17], captions[17];
	snprintf(keys, sizeof(keys), "%016" PRIx64, digests->keys);
	snprintf(captions, sizeof(captions), "%016" PRIx64, digests->captions);
	return cJSON_AddNumberToObject(list, "items", (double)digests->items) &&
	       cJSON_AddStringToObject(list, "keys", keys) &&
	       cJSON_AddStringToObject(list, "captions", captions);
}

cJSON *smalti_extract_identity_before(const struct smalti_extract_parts *parts)
{
	const struct smalti_dataset_digests *prefix = &smalti_dataset_info(parts->dataset)->prefix;
	cJSON *list = prefix->items > 0 ? cJSON_CreateObject() : NULL;
	if (!list || fill_list(list, prefix))
		return list;
	cJSON_Delete(list);
	return NULL;
}

static bool add_text(cJSON *identity, const struct smalti_extract_options *o, const char *digest)
{
	cJSON *text = cJSON_AddObjectToObject(identity, "text");
	cJSON *captions = cJSON_AddArrayToObject(text, "captions");
	for (int i = 0; i < o->caption_count; i++)
		if (!cJSON_AddItemToArray(captions, cJSON_CreateString(o->captions[i])))
			return false;
	return cJSON_AddStringToObject(text, "cleaning", smalti_cleanings[o->cleaning]) &&
	       cJSON_AddNumberToObject(text, "max_tokens", (double)o->max_tokens) &&
	       cJSON_AddStringToObject(text, "model", digest);
}

/* Adds what scales the VAE's own latents, besides the scaling factor, which shards have. */
static bool add_statistics(cJSON *images, const struct smalti_vae_config *vae)
{
	const int count = (int)vae->latent_channels;
	return !vae->has_statistics ||
	       (cJSON_AddItemToObject(images, "latents_mean",
				      cJSON_CreateDoubleArray(vae->latents_mean, count)) &&
		cJSON_AddItemToObject(images, "latents_std",
				      cJSON_CreateDoubleArray(vae->latents_std, count)));
}

static bool add_images(cJSON *identity, const struct smalti_extract_options *o,
		       const struct smalti_vae_config *vae, const char *digest)
{
	cJSON *images = cJSON_AddObjectToObject(identity, "pictures");
	return add_statistics(images, vae) &&
	       cJSON_AddNumberToObject(images, "image_size", (double)o->image_size) &&
	       cJSON_AddStringToObject(images, "fit", smalti_fittings[o->fit]) &&
	       cJSON_AddStringToObject(images, "orientation", o->stored_orientation ? "stored" : "exif") &&
	       cJSON_AddStringToObject(images, "model", digest);
}

cJSON *smalti_extract_identity(const struct smalti_extract_parts *parts, struct smalti_error *error)
{
	const struct smalti_extract_options *o = &parts->options;
	cJSON *identity = cJSON_CreateObject();
	if (cJSON_AddStringToObject(identity, "type", smalti_dtype_name(parts->schema.dtype)) &&
	    cJSON_AddStringToObject(identity, "precision", smalti_precisions[o->model.precision]) &&
	    cJSON_AddStringToObject(identity, "isa", smalti_isa_name(smalti_isa())) &&
	    (!parts->text.model || add_text(identity, o, parts->text_digest)) &&
	    (!parts->vae || add_images(identity, o, &parts->vae->config, parts->vae_digest)) &&
	    fill_list(cJSON_AddObjectToObject(identity, "list"),
		      &smalti_dataset_info(parts->dataset)->digests))
		return identity; /* the list last: another --caption-key has other captions, too */
	cJSON_Delete(identity);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the features");
	return NULL;
}

bool smalti_extract_accepts(void *options, const char *key)
{
	const struct smalti_extract_options *o = options;
	return strcmp(key, "shard_items") == 0 || (strcmp(key, "isa") == 0 && o->allow_mixed_isa);
}

const struct smalti_identity_remedy smalti_extract_remedies[] = {
    {"list.captions", "the captions"},
    {"list.items", "the data set (with --append it may have more items at its end)"},
    {"list", "the data set"},
    {"isa", "the instruction set (SMALTI_MAX_ISA, or --allow-mixed-isa to mix them)"},
    {"type", "--dtype"},
    {"precision", "--precision"},
    {"text.captions", "--caption-key"},
    {"text.cleaning", "--clean"},
    {"text.max_tokens", "--max-tokens"},
    {"text.model", "--model, or --tokenizer, --text-encoder and --text-encoder-precision,"},
    {"text", "--t5 or --vae"},
    {"pictures.image_size", "--img-size"},
    {"pictures.fit", "--fit"},
    {"pictures.orientation", "--orientation"},
    {"pictures.model", "--model or --vae-model"},
    {"pictures", "--t5 or --vae"},
    {NULL, NULL},
};
