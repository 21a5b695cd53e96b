/* SPDX-License-Identifier: Apache-2.0 */
/* A form of POST /v1/images/edits: the keys of a request as fields, and pictures as files. */
#include "base/json.h"
#include "serve/form.h"
#include "serve/serve.h"

/* The most of a picture. */
enum { MAX_PIXELS = 1 << 25 };

/* The fields that are no text in JSON. */
static const char *const literals[] = {"n",
				       "num_images_per_prompt",
				       "seed",
				       "width",
				       "height",
				       "num_inference_steps",
				       "guidance_scale",
				       "eta",
				       "strength",
				       "keep_original",
				       "use_resolution_binning",
				       "stream",
				       "partial_images",
				       "output_compression"};

/* Tells whether the value is a number, true or false as it stands. */
static bool is_literal(const char *key, const char *value)
{
	bool listed = false;
	for (size_t i = 0; i < COUNT_OF(literals); i++)
		listed = listed || strcmp(key, literals[i]) == 0;
	if (!listed || !*value)
		return false;
	return strcmp(value, "true") == 0 || strcmp(value, "false") == 0 ||
	       value[strspn(value, "+-.0123456789eE")] == '\0';
}

static int add_field(cJSON *fields, const struct smalti_form_part *part, struct smalti_error *error)
{
	SCOPED(free) char *value = smalti_calloc((int64_t)part->length + 1, 1, error);
	if (!value)
		return -1;
	memcpy(value, part->data, part->length);
	if (memchr(value, '\0', part->length) || cJSON_HasObjectItem(fields, part->name))
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"%s\": expected a text without NUL, and one such field", part->name);
	const cJSON *added = is_literal(part->name, value)
				 ? cJSON_AddRawToObject(fields, part->name, value)
				 : cJSON_AddStringToObject(fields, part->name, value);
	return added ? 0 : smalti_fail(error, SMALTI_ENOMEM, "no memory for a form");
}

/* Refuses a PNG with transparency: other servers repaint where a mask is transparent, which is not read. */
static int check_mask(const struct smalti_form_part *part, struct smalti_error *error)
{
	enum { COLOUR_TYPE = 25, WITH_ALPHA = 4 };
	const bool png = part->length > COLOUR_TYPE && memcmp(part->data, "\x89PNG", 4) == 0;
	if (!png || !(part->data[COLOUR_TYPE] & WITH_ALPHA))
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "\"mask\": expected a picture that is white where the image is repainted and else "
			   "black, found one with transparency");
}

static int add_picture(struct smalti_picture *picture, const struct smalti_form_part *part,
		       struct smalti_error *error)
{
	if (picture->pixels)
		return smalti_fail(error, SMALTI_EUNSUPPORTED, "\"%s\": expected one, found more",
				   part->name);
	return smalti_picture_read_memory(picture, part->name, part->data, (int64_t)part->length, MAX_PIXELS,
					  error);
}

static int add_part(struct smalti_serve_request *pictures, cJSON *fields, const struct smalti_form_part *part,
		    struct smalti_error *error)
{
	if (strcmp(part->name, "image") == 0 || strcmp(part->name, "image[]") == 0)
		return add_picture(&pictures->image, part, error);
	if (strcmp(part->name, "mask") != 0)
		return add_field(fields, part, error);
	if (check_mask(part, error) < 0 || add_picture(&pictures->mask, part, error) < 0)
		return -1;
	smalti_picture_make_grey(&pictures->mask);
	return 0;
}

/* Reads the pictures, and the fields as an object. */
static int read_parts(struct smalti_serve_request *pictures, cJSON *fields, const char *body, size_t length,
		      struct smalti_error *error)
{
	struct smalti_form form;
	struct smalti_form_part part;
	int status = smalti_form_open(&form, body, length, error);
	while (status == 0 && (status = smalti_form_next(&form, &part, error)) > 0)
		status = add_part(pictures, fields, &part, error);
	if (status == 0 && !pictures->image.pixels)
		return smalti_fail(error, SMALTI_EFORMAT, "\"image\": expected a file, found none");
	return status;
}

static void set_pictures(struct smalti_serve_request *request)
{
	struct smalti_request *r = &request->request;
	r->image = request->image.pixels;
	r->image_width = request->image.width;
	r->image_height = request->image.height;
	r->mask = request->mask.pixels;
	r->mask_width = request->mask.width;
	r->mask_height = request->mask.height;
}

int smalti_serve_edit_read(struct smalti_serve_request *request, const char *body, size_t length,
			   const struct smalti_serve_options *options, const char *model,
			   struct smalti_error *error)
{
	struct smalti_serve_request pictures = {0};
	*request = pictures;
	SCOPED(cJSON_Delete) cJSON *fields = cJSON_CreateObject();
	int status = fields ? read_parts(&pictures, fields, body, length, error)
			    : smalti_fail(error, SMALTI_ENOMEM, "no memory for a form");
	SCOPED(free) char *text = status == 0 ? cJSON_PrintUnformatted(fields) : NULL;
	if (status == 0 && !text)
		status = smalti_fail(error, SMALTI_ENOMEM, "no memory for a form");
	if (status == 0)
		status = smalti_serve_request_read(request, text, strlen(text), options, model, error);
	request->image = pictures.image;
	request->mask = pictures.mask;
	set_pictures(request);
	return status;
}
