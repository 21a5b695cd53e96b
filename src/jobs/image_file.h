/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image_writer.h"
#include "smalti/generate.h"

/* Generated images as PNG files that say how they were made. */

/* The facts in an image's metadata besides its request. */
struct smalti_image_origin {
	const char *model;     /* digest */
	const char *scheduler; /* the model's own */
	const char *precision;
	const char *latents; /* digest of the first latents; NULL: noise */
};

/* Returns a resolved request, with the plan's strategy, shares and lora, as one line of JSON: everything that
 * the pixels depend on and nothing else, so that equal texts are equal images. Free with free(). */
char *smalti_image_parameters(const struct smalti_request *request, int64_t image,
			      const struct smalti_image_origin *origin, struct smalti_error *error);

/* Begins the PNG of an image, with its metadata and what its step cache did (NULL: nothing): on `stream`, as
 * smalti_image_begin(), or if that is NULL as the file `path`, as smalti_image_create(). */
struct smalti_image_writer *smalti_image_begin_png(FILE *stream, const char *path, int64_t width,
						   int64_t height, const char *parameters, const char *steps,
						   struct smalti_error *error);

/* Returns what a step cache did as one line of JSON, {"calls": 40, "skipped": [[step, branch, value], ...]};
 * NULL without memory. It is a text of the image besides its parameters. Free with free(). */
char *smalti_image_steps(const struct smalti_step_report *report);

/* The files of one image. Nothing is visible under their names before the commit. */
struct smalti_image_file {
	char *path, *latents_path, *parameters; /* owned; latents_path NULL: latents are not kept */
	char *steps;                            /* what its step cache did; owned, NULL: nothing */
	int64_t width, height;
	/* Open from the first rows on: an image that waits for its turn holds no file open. */
	struct smalti_image_writer *writer;
	float *latents;
	int64_t shape[3];
};

enum smalti_image_file_state {
	SMALTI_IMAGE_FILE_FOREIGN = -1, /* another program made a file of that name, or it cannot be read */
	SMALTI_IMAGE_FILE_ABSENT = 0,
	SMALTI_IMAGE_FILE_WHOLE,     /* all files are there, with these parameters */
	SMALTI_IMAGE_FILE_IN_PART,   /* the latents are missing */
	SMALTI_IMAGE_FILE_DIFFERENT, /* it has other parameters */
};
/* FOREIGN comes with an error. */
enum smalti_image_file_state smalti_image_file_look(const struct smalti_image_file *file,
						    struct smalti_error *error);

/* Implements struct smalti_image_callbacks, whose `user` is a file or begins with one. */
int smalti_image_file_rows(void *file, int64_t first, int64_t count, const unsigned char *rgb,
			   struct smalti_error *error);
void smalti_image_file_steps(void *file, const struct smalti_step_report *report);
int smalti_image_file_latents(void *file, const int64_t shape[3], const float *values,
			      struct smalti_error *error);

/* Commits the latents first, then the image: an image that exists is complete. Leaves nothing on failure. */
int smalti_image_file_commit(struct smalti_image_file *file, struct smalti_error *error);
/* The same in two parts, the second of which takes little time: ends the image and puts its bytes on the
 * disk; gives it its name, after which the caller syncs the directory. @{ */
int smalti_image_file_finish(struct smalti_image_file *file, struct smalti_error *error);
int smalti_image_file_place(struct smalti_image_file *file, struct smalti_error *error);
/* @} */
/* Drops what was not committed, and frees the file's memory. */
void smalti_image_file_close(struct smalti_image_file *file);
