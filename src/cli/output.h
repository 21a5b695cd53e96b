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

/* An existing directory, or a name that ends in '/'. */
bool smalti_is_directory(const char *path);

/* -1 where a file cannot go to the standard output: a terminal, or one that is `taken` by one of `options`.
 */
int smalti_check_stdout(const char *path, bool taken, const char *options, struct smalti_error *error);

/* The index of the format that was chosen, or else that the file's name ends in, one of `suffixes`, which
 * NULL ends; for the standard output and directories the first. -1 for another name. */
int smalti_format_of(const char *path, bool chosen, int choice, const char *const *suffixes,
		     struct smalti_error *error);

/* Decides by the path (NULL: "image.png" if there is one image) and the number of images (-1: not
 * known), which is looked at only to see whether it is 1. Both texts outlive the output. SMALTI_EINVAL for a
 * choice that does not fit, SMALTI_EIO for a directory that cannot be made or written to. */
int smalti_output_open(struct smalti_output *output, const char *path, const char *suffix, int64_t images,
		       struct smalti_error *error);
void smalti_output_close(struct smalti_output *output);

/* Takes the id and the file names of a request's images: -1 if it was taken before. */
int smalti_output_claim(struct smalti_output *output, const char *id, int64_t images,
			struct smalti_error *error);

/* The image's file, checked not to be something else than a file. Free with free(). */
char *smalti_output_image(const struct smalti_output *output, const char *id, int64_t image, int64_t images,
			  struct smalti_error *error);
/* The file of its latents, checked likewise: of the same name, but for .safetensors. */
char *smalti_output_latents(const char *image, struct smalti_error *error);
