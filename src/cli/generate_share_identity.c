/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sealed.h"
#include "cli/generate_share.h"
#include "kernels/isa.h"

const struct smalti_identity_remedy smalti_generate_share_remedies[] = {
    {"prompts", "the file of --prompts"},
    {"isa", "the instruction set (SMALTI_MAX_ISA)"},
    {"save_latents", "--save-latents"},
    {"negative_prompt", "--negative"},
    {"seed", "--seed"},
    {"images", "--images"},
    {"width", "--size"},
    {"height", "--size"},
    {"use_resolution_binning", "--resolution-binning"},
    {"num_inference_steps", "--steps"},
    {"guidance_scale", "--guidance"},
    {"eta", "--eta"},
    {"scheduler", "--scheduler or --scheduler-config"},
    {"step_cache", "--step-cache"},
    {"noise", "--noise"},
    {"cleaning", "--clean"},
    {"tile_tokens", "--tile-tokens"},
    {"tile_rows", "--tile-rows"},
    {"shares", "--shares"},
    {"strategy", "--strategy"},
    {"patches", "--patches"},
    {"warmup", "--warmup"},
    {"precision", "--precision"},
    {"model", "the model's files"},
    {"latents", "--latents"},
    {"init_image", "--image"},
    {"strength", "--strength"},
    {"posterior", "--posterior"},
    {"mask", "--mask"},
    {"keep_original", "--keep-original"},
    {NULL, NULL},
};

static bool replace_by_text(cJSON *object, const char *key, const char *text)
{
	return cJSON_ReplaceItemInObjectCaseSensitive(object, key, cJSON_CreateString(text));
}

/* Returns what the images of all lines have in common, as their metadata says it. */
static cJSON *common(struct smalti_generation *generation, struct smalti_error *error)
{
	const struct smalti_generate_options *options = generation->options;
	struct smalti_request request = options->request;
	char seed[32];
	if (smalti_generation_read_pictures(generation, options->image, options->mask, &request, error) < 0)
		return NULL;
	SCOPED(free) char *text = smalti_image_parameters(&request, 0, &generation->origin, error);
	cJSON *object = text ? smalti_json_parse(text, strlen(text), error) : NULL;
	if (!object)
		return NULL;
	cJSON_DeleteItemFromObjectCaseSensitive(object, "prompt");
	cJSON_DeleteItemFromObjectCaseSensitive(object, "image");
	snprintf(seed, sizeof(seed), "%" PRIu64, request.seed); /* a JSON number may have fewer digits */
	if (replace_by_text(object, "seed", seed))
		return object;
	cJSON_Delete(object);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the images");
	return NULL;
}

cJSON *smalti_generate_share_identity(struct smalti_generation *generation,
				      const struct smalti_line_index *index, struct smalti_error *error)
{
	char digest[SMALTI_HEX_DIGITS + 1];
	cJSON *identity = common(generation, error);
	if (!identity)
		return NULL;
	smalti_hex_print(index->digest, digest);
	cJSON *prompts = cJSON_AddObjectToObject(identity, "prompts");
	if (cJSON_AddBoolToObject(identity, "save_latents", generation->options->save_latents) &&
	    cJSON_AddStringToObject(identity, "isa", smalti_isa_name(smalti_isa())) &&
	    cJSON_AddNumberToObject(prompts, "bytes", (double)index->file.st_size) &&
	    cJSON_AddNumberToObject(prompts, "lines", (double)index->lines) &&
	    cJSON_AddStringToObject(prompts, "xxh3", digest))
		return identity;
	cJSON_Delete(identity);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a description of the images");
	return NULL;
}
