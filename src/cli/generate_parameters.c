/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate_image.h"

#include "base/error.h"
#include "base/json.h"
#include "text/caption.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const noises[] = {"f32", "f16", "bf16"};

/* cJSON's numbers are doubles: a seed may need more digits. */
static bool add_integer(cJSON *object, const char *key, const char *format, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), format, value);
	return cJSON_AddRawToObject(object, key, text);
}

static bool add_count(cJSON *object, const char *key, int64_t value)
{
	return add_integer(object, key, "%" PRIu64, (uint64_t)value);
}

static bool add_text(cJSON *object, const char *key, const char *text)
{
	return text ? cJSON_AddStringToObject(object, key, text) : cJSON_AddNullToObject(object, key);
}

static bool add_request(cJSON *o, const struct smalti_request *r, int64_t image, const char *own_scheduler)
{
	return add_text(o, "prompt", r->prompt) &&
	       add_text(o, "negative_prompt", r->negative_prompt ? r->negative_prompt : "") &&
	       add_count(o, "seed", (int64_t)r->seed) && add_count(o, "image", image) &&
	       add_count(o, "images", r->images) && add_count(o, "width", r->width) &&
	       add_count(o, "height", r->height) &&
	       (!r->resolution_binning || cJSON_AddTrueToObject(o, "use_resolution_binning")) &&
	       add_count(o, "num_inference_steps", r->steps) &&
	       cJSON_AddNumberToObject(o, "guidance_scale", r->guidance) &&
	       add_text(o, "scheduler", r->scheduler ? r->scheduler : own_scheduler) &&
	       add_text(o, "noise", noises[r->noise]) &&
	       add_text(o, "cleaning", smalti_cleanings[r->cleaning]) &&
	       add_count(o, "tile_tokens", r->tile_tokens) && add_count(o, "tile_rows", r->tile_rows) &&
	       (!r->shares || add_text(o, "shares", r->shares));
}

char *smalti_image_parameters(const struct smalti_request *request, int64_t image,
			      const struct smalti_image_origin *origin, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	const bool ok = object && add_request(object, request, image, origin->scheduler) &&
			add_text(object, "precision", origin->precision) &&
			add_text(object, "model", origin->model) &&
			(!origin->latents || add_text(object, "latents", origin->latents));
	char *text = ok ? cJSON_PrintUnformatted(object) : NULL;
	if (!text)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for an image's metadata");
	return text;
}
