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

int smalti_image_file_rows(void *image, int64_t first, int64_t count, const unsigned char *rgb,
			   struct smalti_error *error)
{
	struct smalti_image_file *file = image;
	if (!file->writer) {
		const struct smalti_image_text texts[] = {{"Software", PACKAGE_STRING},
							  {"parameters", file->parameters}};
		const struct smalti_image_format format = {.encoding = SMALTI_IMAGE_PNG,
							   .width = file->width,
							   .height = file->height,
							   .depth = 8,
							   .texts = texts,
							   .text_count = 2};
		file->writer = smalti_image_create(file->path, &format, error);
	}
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

int smalti_image_file_commit(struct smalti_image_file *file, struct smalti_error *error)
{
	if (smalti_image_finish(file->writer, error) < 0 || write_latents(file, error) < 0)
		return -1;
	const int status = smalti_image_commit(file->writer, error);
	file->writer = NULL;
	if (status < 0 && file->latents)
		unlink(file->latents_path);
	return status;
}

void smalti_image_file_close(struct smalti_image_file *file)
{
	smalti_image_abort(file->writer);
	free(file->path);
	free(file->latents_path);
	free(file->parameters);
	free(file->latents);
}
