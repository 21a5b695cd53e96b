/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "base/parse.h"
#include "serve/serve.h"

/* The fields that OpenAI names otherwise, and those that a prompt's line does not have. */
struct more {
	int64_t n, partial, compression;
	char *size, *model, *user, *style;
	bool stream;
};
#define CONFIG struct more
enum { LOSSLESS = 100 };

static const char *const formats[] = {"b64_json", "", NULL}, *const types[] = {"png", "", NULL},
			 *const qualities[] = {"auto", "standard", "", NULL},
			 *const grounds[] = {"auto", "opaque", "", NULL},
			 *const moderations[] = {"auto", "low", "", NULL},
			 *const fidelities[] = {"low", "", NULL};
static const struct smalti_field fields[] = {
    {FIELD_INT("n", NULLABLE, n, 1, SMALTI_IMAGES_MAX)},
    {FIELD_TEXT("size", NULLABLE, size)},
    {FIELD_TEXT("model", NULLABLE, model)},
    {FIELD_TEXT("user", NULLABLE, user)},
    {FIELD_BOOL("stream", NULLABLE, stream)},
    {FIELD_ONLY("response_format", NULLABLE, formats)},
    {FIELD_ONLY("output_format", NULLABLE, types)},
    {FIELD_ONLY("quality", NULLABLE, qualities)},
    {FIELD_ONLY("background", NULLABLE, grounds)},
    {FIELD_ONLY("moderation", NULLABLE, moderations)},
    {FIELD_TEXT("style", NULLABLE, style)},
    {FIELD_ONLY("input_fidelity", NULLABLE, fidelities)},
    {FIELD_INT("partial_images", NULLABLE, partial, 0, 3)},
    {FIELD_INT("output_compression", NULLABLE, compression, 0, LOSSLESS)},
};

static int check_max(const char *key, int64_t asked, int64_t max, struct smalti_error *error)
{
	if (asked <= max)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "\"%s\" is %" PRId64 ", but this server allows %" PRId64 " at most", key, asked,
			   max);
}

static int check_only(const char *key, int64_t asked, int64_t only, struct smalti_error *error)
{
	if (asked == only)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "\"%s\" is %" PRId64 ", but this server supports %" PRId64 " alone", key, asked,
			   only);
}

static int set_size(struct smalti_request *request, const char *size, struct smalti_error *error)
{
	struct smalti_size pixels;
	if (!size || !*size || strcmp(size, "auto") == 0)
		return 0;
	if (request->width || request->height)
		return smalti_fail(error, SMALTI_EINVAL,
				   "\"size\" and \"width\", \"height\" exclude each other");
	if (smalti_parse_size(size, SMALTI_SIDE_MIN, SMALTI_SIDE_MAX, &pixels, error) < 0) {
		smalti_error_prefix(error, "\"size\"");
		return -1;
	}
	request->width = pixels.width;
	request->height = pixels.height;
	return 0;
}

static int add_more(struct smalti_serve_request *request, const struct more *more, const char *model,
		    struct smalti_error *error)
{
	if (more->n && request->line.images)
		return smalti_fail(error, SMALTI_EINVAL,
				   "\"n\" and \"num_images_per_prompt\" exclude each other");
	if (more->model && *more->model && strcmp(more->model, model) != 0)
		return smalti_fail(error, SMALTI_ENOENT, "\"model\" is \"%.99s\", but this server has \"%s\"",
				   more->model, model);
	if (more->style && *more->style)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "\"style\" is \"%.99s\", but this server supports none", more->style);
	if (check_only("partial_images", more->partial, 0, error) < 0 ||
	    check_only("output_compression", more->compression, LOSSLESS, error) < 0)
		return -1;
	request->request.images = more->n ? more->n : request->request.images;
	request->stream = more->stream;
	return set_size(&request->request, more->size, error);
}

static int check_limits(const struct smalti_request *request, const struct smalti_serve_options *options,
			struct smalti_error *error)
{
	const struct smalti_serve_limits *limits = &options->limits;
	const int64_t images = smalti_min(options->images, smalti_min(limits->waiting, limits->of_client));
	return check_max("n", request->images, images, error) < 0 ||
		       check_max("num_inference_steps", request->steps, options->steps, error) < 0 ||
		       check_max("width", request->width, options->width, error) < 0 ||
		       check_max("height", request->height, options->height, error) < 0
		   ? -1
		   : 0;
}

/* Replaces the names of adapters by their paths. */
static int name_loras(struct smalti_prompt_line *line, const struct smalti_serve_options *options,
		      struct smalti_error *error)
{
	if (!line->lora)
		return 0;
	char *paths = smalti_serve_loras_paths(&options->loras, line->lora, error);
	free(line->lora);
	line->lora = paths;
	return paths ? 0 : -1;
}

int smalti_serve_request_read(struct smalti_serve_request *request, const char *body, size_t length,
			      const struct smalti_serve_options *options, const char *model,
			      struct smalti_error *error)
{
	struct more more = {.compression = LOSSLESS};
	const struct smalti_prompt_fields known = {fields, COUNT_OF(fields), &more};
	*request = (struct smalti_serve_request){0};
	int status = smalti_prompt_parse_json(body, length, &request->line, &known, error);
	if (status == 0) {
		status = name_loras(&request->line, options, error);
		request->request = smalti_request_of_line(&options->request, &request->line);
	}
	if (status == 0) {
		status = add_more(request, &more, model, error);
	}
	free(more.size);
	free(more.model);
	free(more.user);
	free(more.style);
	return status == 0 ? check_limits(&request->request, options, error) : -1;
}

void smalti_serve_request_free_pictures(struct smalti_serve_request *request)
{
	smalti_picture_free(&request->image);
	smalti_picture_free(&request->mask);
	request->request.image = request->request.mask = NULL;
}

void smalti_serve_request_free(struct smalti_serve_request *request)
{
	smalti_serve_request_free_pictures(request);
	smalti_prompt_line_free(&request->line);
}
