/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/set.h"

/* Where images go: one file, or files in a directory that are named after their ids. */
struct smalti_output {
	const char *file;   /* "-": the standard output; NULL: a directory */
	char *directory;    /* where the files lie */
	const char *suffix; /* of files in a directory, ".png" */
	struct smalti_set ids;
	struct smalti_set names;
};

/* Tells whether a path is an existing directory or ends in '/'. */
bool smalti_names_directory(const char *path);

/* Returns -1 if a file for "-" cannot go to the standard output: a terminal, or `taken` by one of
 * `options`. */
int smalti_check_stdout(const char *path, bool taken, const char *options, struct smalti_error *error);

/* Returns the index of the chosen format, or else of that one of `suffixes`, which NULL ends, that the file's
 * name ends in; 0 for the standard output and directories; -1 for another name. */
int smalti_format_of(const char *path, bool chosen, int choice, const char *const *suffixes,
		     struct smalti_error *error);

/* Opens the output by its path (NULL: "image.png" if there is one image) and by whether the number of images
 * (-1: not known) is 1. Both texts outlive the output. SMALTI_EINVAL for a choice that does not fit,
 * SMALTI_EIO for a directory that cannot be made or written to. */
int smalti_output_open(struct smalti_output *output, const char *path, const char *suffix, int64_t images,
		       struct smalti_error *error);
void smalti_output_close(struct smalti_output *output);

/* Takes the id and the file names of a request's images; -1 if one was taken before. */
int smalti_output_claim(struct smalti_output *output, const char *id, int64_t images,
			struct smalti_error *error);

/* Tells whether a path is that of an image that smalti_output_claim() has reserved. */
bool smalti_output_has(const struct smalti_output *output, const char *path);

/* Returns the image's path; only a file may be there. Free with free(). */
char *smalti_output_image(const struct smalti_output *output, const char *id, int64_t image, int64_t images,
			  struct smalti_error *error);
/* Returns the path of its latents, checked likewise: the image's with .safetensors for .png. */
char *smalti_output_latents(const char *image, struct smalti_error *error);
