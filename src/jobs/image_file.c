/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/image_file.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "image/png_reader.h"
#include "text/cleaning.h"

#include <xxhash.h>

/* Tells whether this program made it: 1 or 0; -1 if the machine cannot tell now. */
static int is_ours(const struct smalti_image_file *file, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	SCOPED(free) char *program = NULL;
	if (smalti_png_read_text(file->path, "Software", &program, &cause) < 0)
		return smalti_is_of_input(cause.code) ? 0 : smalti_pass(error, &cause);
	return program && strncmp(program, PACKAGE_NAME " ", strlen(PACKAGE_NAME " ")) == 0;
}

enum smalti_image_file_state smalti_image_file_look(const struct smalti_image_file *file,
						    struct smalti_error *error)
{
	SCOPED(free) char *found = NULL;
	const int there = smalti_find_file(file->path, error);
	if (there <= 0)
		return there ? SMALTI_IMAGE_FILE_FOREIGN : SMALTI_IMAGE_FILE_ABSENT;
	const int ours = is_ours(file, error);
	if (ours == 0)
		smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: is there, but was not made by smalti generate: move it away, or name another "
		    "directory",
		    file->path);
	if (ours <= 0 || smalti_png_read_text(file->path, "parameters", &found, error) < 0)
		return SMALTI_IMAGE_FILE_FOREIGN;
	if (!found || strcmp(found, file->parameters) != 0)
		return SMALTI_IMAGE_FILE_DIFFERENT;
	const int latents = file->latents_path ? smalti_find_file(file->latents_path, error) : 1;
	return latents < 0    ? SMALTI_IMAGE_FILE_FOREIGN
	       : latents == 0 ? SMALTI_IMAGE_FILE_IN_PART
			      : SMALTI_IMAGE_FILE_WHOLE;
}

struct smalti_image_writer *smalti_image_begin_png(FILE *stream, const char *path, int64_t width,
						   int64_t height, const char *parameters, const char *steps,
						   struct smalti_error *error)
{
	const struct smalti_image_text texts[] = {
	    {"Software", PACKAGE_STRING}, {"parameters", parameters}, {"step_cache", steps}};
	const struct smalti_image_format format = {.encoding = SMALTI_IMAGE_PNG,
						   .width = width,
						   .height = height,
						   .depth = 8,
						   .texts = texts,
						   .text_count = COUNT_OF(texts) - !steps};
	return stream ? smalti_image_begin(stream, path, &format, error)
		      : smalti_image_create(path, &format, error);
}

/* Adds a skipped call, as [step, branch, value]. */
static bool add_skipped(cJSON *list, int64_t step, int64_t branch, double value)
{
	cJSON *call = cJSON_CreateArray();
	return cJSON_AddItemToArray(list, call) &&
	       cJSON_AddItemToArray(call, cJSON_CreateNumber((double)step)) &&
	       cJSON_AddItemToArray(call, cJSON_CreateNumber((double)branch)) &&
	       cJSON_AddItemToArray(call, cJSON_CreateNumber(value));
}

char *smalti_image_steps(const struct smalti_step_report *report)
{
	const int64_t calls = report->steps * report->branches;
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	bool ok = object && cJSON_AddNumberToObject(object, "calls", (double)calls);
	cJSON *list = ok ? cJSON_AddArrayToObject(object, "skipped") : NULL;
	for (int64_t i = 0; i < calls; i++)
		if (report->calls[i].skipped)
			ok = ok && add_skipped(list, i / report->branches, i % report->branches,
					       report->calls[i].value);
	return ok && list ? cJSON_PrintUnformatted(object) : NULL;
}

void smalti_image_file_steps(void *image, const struct smalti_step_report *report)
{
	struct smalti_image_file *file = image;
	file->steps = smalti_image_steps(report);
}

int smalti_image_file_rows(void *image, int64_t first, int64_t count, const unsigned char *rgb,
			   struct smalti_error *error)
{
	struct smalti_image_file *file = image;
	if (!file->writer)
		file->writer = smalti_image_begin_png(NULL, file->path, file->width, file->height,
						      file->parameters, file->steps, error);
	return file->writer ? smalti_image_write_rows(file->writer, first, count, rgb, error) : -1;
}

int smalti_image_file_latents(void *image, const int64_t shape[3], const float *values,
			      struct smalti_error *error)
{
	struct smalti_image_file *file = image;
	const int64_t count = shape[0] * shape[1] * shape[2];
	file->latents = smalti_calloc(count, sizeof(float), error);
	if (!file->latents)
		return -1;
	memcpy(file->latents, values, (size_t)count * sizeof(float));
	memcpy(file->shape, shape, sizeof(file->shape));
	return 0;
}

static int write_latents(const struct smalti_image_file *file, struct smalti_error *error)
{
	const struct smalti_tensor_view view = {.name = "latents",
						.dtype = SMALTI_F32,
						.rank = 4,
						.shape = {1, file->shape[0], file->shape[1], file->shape[2]},
						.data = file->latents};
	return file->latents ? smalti_safetensors_write(file->latents_path, &view, 1, error) : 0;
}

/* Writes the latents, then gives the image its name. */
static int give_names(struct smalti_image_file *file,
		      int (*end)(struct smalti_image_writer *writer, struct smalti_error *error),
		      struct smalti_error *error)
{
	if (write_latents(file, error) < 0)
		return -1;
	const int status = end(file->writer, error);
	file->writer = NULL;
	if (status < 0 && file->latents)
		unlink(file->latents_path);
	return status;
}

int smalti_image_file_commit(struct smalti_image_file *file, struct smalti_error *error)
{
	return smalti_image_finish(file->writer, error) < 0 ? -1
							    : give_names(file, smalti_image_commit, error);
}

int smalti_image_file_finish(struct smalti_image_file *file, struct smalti_error *error)
{
	return smalti_image_finish(file->writer, error) < 0 ? -1 : smalti_image_sync(file->writer, error);
}

int smalti_image_file_place(struct smalti_image_file *file, struct smalti_error *error)
{
	return give_names(file, smalti_image_place, error);
}

void smalti_image_file_close(struct smalti_image_file *file)
{
	smalti_image_abort(file->writer);
	free(file->path);
	free(file->latents_path);
	free(file->parameters);
	free(file->steps);
	free(file->latents);
}

static const char *const noises[] = {"f32", "f16", "bf16"};

/* Adds a count as text: cJSON's numbers are doubles, and a seed may need more digits. */
static bool add_count(cJSON *object, const char *key, int64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)value);
	return cJSON_AddRawToObject(object, key, text);
}

static bool add_text(cJSON *object, const char *key, const char *text)
{
	return text ? cJSON_AddStringToObject(object, key, text) : cJSON_AddNullToObject(object, key);
}

/* Adds a picture's size and digest. */
static bool add_picture(cJSON *object, const char *key, int64_t width, int64_t height, int64_t channels,
			const void *pixels)
{
	char text[64];
	snprintf(text, sizeof(text), "%" PRId64 "x%" PRId64 " %016" PRIx64, width, height,
		 XXH3_64bits(pixels, (size_t)(width * height * channels)));
	return add_text(object, key, text);
}

static bool add_pictures(cJSON *o, const struct smalti_request *r)
{
	return add_picture(o, "init_image", r->image_width, r->image_height, 3, r->image) &&
	       cJSON_AddNumberToObject(o, "strength", r->strength) &&
	       (!r->posterior || add_text(o, "posterior", "mean")) &&
	       (!r->mask || add_picture(o, "mask", r->mask_width, r->mask_height, 1, r->mask)) &&
	       (!r->keep_original || cJSON_AddTrueToObject(o, "keep_original"));
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
	       (!r->image || add_pictures(o, r)) && (!r->eta || cJSON_AddNumberToObject(o, "eta", r->eta)) &&
	       add_text(o, "noise", noises[r->noise]) &&
	       add_text(o, "cleaning", smalti_cleanings[r->cleaning]) &&
	       add_count(o, "tile_tokens", r->tile_tokens) && add_count(o, "tile_rows", r->tile_rows) &&
	       (!r->lora || add_text(o, "lora", r->lora)) &&
	       (!r->step_cache || add_text(o, "step_cache", r->step_cache)) &&
	       (!r->shares || add_text(o, "shares", r->shares)) &&
	       (!r->strategy || add_text(o, "strategy", r->strategy)) &&
	       (!r->patches || add_count(o, "patches", r->patches)) &&
	       (!r->warmup || add_count(o, "warmup", r->warmup));
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
