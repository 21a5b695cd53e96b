/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image_writer.h"
#include "smalti/generate.h"

/* Images that are generated, as PNG files that say what they were made from. */

/* What an image's metadata says besides its request. */
struct smalti_image_origin {
	const char *model;     /* digest */
	const char *scheduler; /* the model's own */
	const char *precision;
	const char *latents; /* digest of those it began with; NULL: noise */
};

/* A request, resolved, as one line of JSON: all that the pixels depend on and nothing else, so that equal
 * texts mean equal images. Free with free(). */
char *smalti_image_parameters(const struct smalti_request *request, int64_t image,
			      const struct smalti_image_origin *origin, struct smalti_error *error);

/* Begins the PNG of an image on `stream`, as smalti_image_begin(), or where that is NULL the file `path`, as
 * smalti_image_create(), with its metadata. */
struct smalti_image_writer *smalti_image_begin_png(FILE *stream, const char *path, int64_t width,
						   int64_t height, const char *parameters,
						   struct smalti_error *error);

/* The files of one image. Nothing is visible under their names before the commit. */
struct smalti_image_file {
	char *path, *latents_path, *parameters; /* owned; latents_path NULL: latents are not kept */
	int64_t width, height;
	/* From the first rows on: what waits for its turn holds no file open. */
	struct smalti_image_writer *writer;
	float *latents;
	int64_t shape[3];
};

/* Whether all its files are there, with these parameters: 1 or 0. -1: there is a file of that name that this
 * program has not made. */
int smalti_image_file_exists(const struct smalti_image_file *file, struct smalti_error *error);

/* Callbacks of struct smalti_image_callbacks, whose `user` is a file or begins with one. */
int smalti_image_file_rows(void *file, int64_t first, int64_t count, const unsigned char *rgb,
			   struct smalti_error *error);
int smalti_image_file_latents(void *file, const int64_t shape[3], const float *values,
			      struct smalti_error *error);

/* The latents first, then the image: an image that is there is complete. Leaves nothing on failure. */
int smalti_image_file_commit(struct smalti_image_file *file, struct smalti_error *error);
/* Drops what was not committed and frees what the file owns. */
void smalti_image_file_close(struct smalti_image_file *file);
