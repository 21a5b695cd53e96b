/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate_image.h"

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "image/image_writer.h"
#include "image/png_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct smalti_image_file {
	char *path, *latents_path, *parameters;
	int64_t width, height;
	/* From the first rows on: what waits for its turn holds no file open. */
	struct smalti_image_writer *image;
	float *latents;
	int64_t shape[3];
};

struct smalti_image_file *smalti_image_file_new(char *path, char *latents, char *parameters, int64_t width,
						int64_t height, struct smalti_error *error)
{
	struct smalti_image_file *file = smalti_calloc(1, sizeof(*file), error);
	if (!file) {
		free(path);
		free(latents);
		free(parameters);
		return NULL;
	}
	file->path = path;
	file->latents_path = latents;
	file->parameters = parameters;
	file->width = width;
	file->height = height;
	return file;
}

const char *smalti_image_file_path(const struct smalti_image_file *file)
{
	return file->path;
}

/* 1 or 0; -1 if the machine could not at this moment. */
static int is_ours(const struct smalti_image_file *file, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	char *program = NULL;
	if (smalti_png_read_text(file->path, "Software", &program, &cause) < 0)
		return smalti_is_of_input(cause.code) ? 0
						      : smalti_fail(error, cause.code, "%s", cause.message);
	const bool ours = program && strncmp(program, PACKAGE_NAME " ", strlen(PACKAGE_NAME " ")) == 0;
	free(program);
	return ours;
}

int smalti_image_file_exists(const struct smalti_image_file *file, struct smalti_error *error)
{
	char *found = NULL;
	const int there = smalti_find_file(file->path, error);
	if (there <= 0)
		return there;
	const int ours = is_ours(file, error);
	if (ours == 0)
		smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: is there, but was not made by smalti generate: move it away, or name another "
		    "directory",
		    file->path);
	if (ours <= 0 || smalti_png_read_text(file->path, "parameters", &found, error) < 0)
		return -1;
	const bool same = found && strcmp(found, file->parameters) == 0;
	free(found);
	return same && file->latents_path ? smalti_find_file(file->latents_path, error) : same;
}

bool smalti_image_file_keeps_latents(const struct smalti_image_file *file)
{
	return file->latents_path;
}

int smalti_image_file_rows(struct smalti_image_file *file, int64_t first, int64_t count,
			   const unsigned char *rgb, struct smalti_error *error)
{
	if (!file->image) {
		const struct smalti_image_text texts[] = {{"Software", PACKAGE_STRING},
							  {"parameters", file->parameters}};
		const struct smalti_image_format format = {.encoding = SMALTI_IMAGE_PNG,
							   .width = file->width,
							   .height = file->height,
							   .depth = 8,
							   .texts = texts,
							   .text_count = 2};
		file->image = smalti_image_create(file->path, &format, error);
	}
	return file->image ? smalti_image_write_rows(file->image, first, count, rgb, error) : -1;
}

int smalti_image_file_latents(struct smalti_image_file *file, const int64_t shape[3], const float *values,
			      struct smalti_error *error)
{
	const int64_t count = shape[0] * shape[1] * shape[2];
	file->latents = smalti_calloc(count, sizeof(float), error);
	if (!file->latents)
		return -1;
	memcpy(file->latents, values, (size_t)count * sizeof(float));
	memcpy(file->shape, shape, sizeof(file->shape));
	return 0;
}

static void release(struct smalti_image_file *file)
{
	free(file->path);
	free(file->latents_path);
	free(file->parameters);
	free(file->latents);
	free(file);
}

static int commit_latents(const struct smalti_image_file *file, struct smalti_error *error)
{
	const struct smalti_tensor_view view = {.name = "latents",
						.dtype = SMALTI_F32,
						.rank = 4,
						.shape = {1, file->shape[0], file->shape[1], file->shape[2]},
						.data = file->latents};
	return file->latents ? smalti_safetensors_write(file->latents_path, &view, 1, error) : 0;
}

int smalti_image_file_commit(struct smalti_image_file *file, struct smalti_error *error)
{
	if (smalti_image_finish(file->image, error) < 0 || commit_latents(file, error) < 0) {
		smalti_image_file_abort(file);
		return -1;
	}
	const int status = smalti_image_commit(file->image, error);
	if (status < 0 && file->latents)
		unlink(file->latents_path);
	release(file);
	return status;
}

void smalti_image_file_abort(struct smalti_image_file *file)
{
	if (!file)
		return;
	smalti_image_abort(file->image);
	release(file);
}
