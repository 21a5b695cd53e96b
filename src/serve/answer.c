/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "serve/serve.h"

static const char *type_of(unsigned status)
{
	return status == MHD_HTTP_UNAUTHORIZED           ? "authentication_error"
	       : status == MHD_HTTP_TOO_MANY_REQUESTS    ? "rate_limit_error"
	       : status < MHD_HTTP_INTERNAL_SERVER_ERROR ? "invalid_request_error"
							 : "server_error";
}

/* Makes {"error": {"message": ..., "type": ...}}, as OpenAI does. */
static cJSON *error_object(unsigned status, const char *message)
{
	cJSON *object = cJSON_CreateObject(), *error = cJSON_AddObjectToObject(object, "error");
	smalti_json_add_text(error, "message", message);
	cJSON_AddStringToObject(error, "type", type_of(status));
	cJSON_AddNullToObject(error, "param");
	cJSON_AddNullToObject(error, "code");
	return object;
}

static char *print(cJSON *object)
{
	char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	return text;
}

/* Makes a server-sent event; frees the object. */
static char *event(const char *name, cJSON *object)
{
	SCOPED(free) char *data = print(object);
	return data ? smalti_format(NULL, "event: %s\ndata: %s\n\n", name, data) : NULL;
}

char *smalti_serve_error_text(unsigned status, const char *message)
{
	return print(error_object(status, message));
}

char *smalti_serve_error_event(const struct smalti_error *error)
{
	return event("error", error_object(smalti_serve_status(error->code), error->message));
}

unsigned smalti_serve_status(enum smalti_code code)
{
	switch (code) {
	case SMALTI_EINVAL:
	case SMALTI_EFORMAT:
	case SMALTI_EUNSUPPORTED:
		return MHD_HTTP_BAD_REQUEST;
	case SMALTI_ENOENT:
		return MHD_HTTP_NOT_FOUND;
	case SMALTI_ENOMEM:
	case SMALTI_ECANCELLED:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

/* Adds an image's index, seed and PNG; returns false without memory. */
static bool add_image(cJSON *object, const struct smalti_serve_image *image)
{
	const struct smalti_request *request = &image->job->request.request;
	SCOPED(free) char *text = smalti_base64(image->data, (int64_t)image->size, NULL);
	char seed[32];
	snprintf(seed, sizeof(seed), "%" PRIu64, request->seed);
	return text && cJSON_AddNumberToObject(object, "index", (double)image->number) &&
	       cJSON_AddRawToObject(object, "seed", seed) &&
	       cJSON_AddStringToObject(object, "b64_json", text);
}

char *smalti_serve_images_text(const struct smalti_serve_job *job)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "created", (double)(int64_t)smalti_wall_clock());
	cJSON *data = cJSON_AddArrayToObject(object, "data");
	for (int64_t i = 0; i < job->request.request.images; i++) {
		cJSON *image = cJSON_CreateObject();
		if (!cJSON_AddItemToArray(data, image) || !add_image(image, &job->images[i]))
			return NULL;
	}
	return cJSON_PrintUnformatted(object);
}

char *smalti_serve_image_event(const struct smalti_serve_image *image)
{
	static const char name[] = "image_generation.completed";
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "type", name);
	cJSON_AddNumberToObject(object, "created_at", (double)(int64_t)smalti_wall_clock());
	add_image(object, image);
	return event(name, object);
}

char *smalti_serve_progress_event(const struct smalti_serve_image *image,
				  const struct smalti_batch_progress *progress)
{
	static const char *const stages[] = {"text", "denoising", "decoding"};
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "type", "image_generation.progress");
	cJSON_AddNumberToObject(object, "index", (double)image->number);
	cJSON_AddStringToObject(object, "stage", stages[progress->stage]);
	cJSON_AddNumberToObject(object, "step", (double)progress->step);
	cJSON_AddNumberToObject(object, "steps", (double)progress->steps);
	cJSON_AddNumberToObject(object, "fraction", progress->images);
	return event("image_generation.progress", object);
}

char *smalti_serve_models_text(const struct smalti_server *server)
{
	cJSON *object = cJSON_CreateObject(), *model = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "object", "list");
	cJSON_AddItemToArray(cJSON_AddArrayToObject(object, "data"), model);
	smalti_json_add_text(model, "id", server->model_name);
	cJSON_AddStringToObject(model, "object", "model");
	cJSON_AddNumberToObject(model, "created", (double)(int64_t)server->started);
	cJSON_AddStringToObject(model, "owned_by", "smalti");
	return print(object);
}
