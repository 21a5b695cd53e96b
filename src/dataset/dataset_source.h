/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_DATASET_DATASET_SOURCE_H
#define SMALTI_DATASET_DATASET_SOURCE_H

#include "dataset/dataset.h"
#include "dataset/spool.h"

#include <stdio.h>

/* What a data set is read from. */

/* One of several tars. */
struct smalti_dataset_tar_file {
	char *path;
	char *prefix;         /* of its items' keys: what tells it from the others */
	int64_t start, bytes; /* of its bytes among those of all */
	bool spooled;         /* it was compressed: */
	int64_t first;        /* it begins there in the spool */
};

struct smalti_dataset_source {
	const struct smalti_dataset_options *options; /* those of the captions and images */
	char *name;                                   /* for messages */
	char *path;    /* of the file or directory; of several tars: of the first one */
	int file;      /* -1: a directory, or several tars */
	int64_t first; /* where it begins in the file */
	FILE *list;    /* of a directory: what it holds (dataset_walk.h) */
	struct smalti_dataset_tar_file *tars; /* several, or those of a directory; else NULL */
	int64_t tar_count;
	int64_t size;              /* where it ends in the file; of the directory's list, all tars */
	struct smalti_spool spool; /* the standard input, or what was compressed */
	char note[512];            /* what a directory has that is not read, or "" */
};

/* Expands braces, keeps the standard input, decompresses, lists a directory. */
int smalti_dataset_source_open(struct smalti_dataset_source *source, const char *const *paths, int64_t count,
			       struct smalti_error *error);
/* -1 with `code`: among several data sets this one is no tar. */
int smalti_dataset_refuse_mixture(const char *path, enum smalti_code code, struct smalti_error *error);
/* Lists a directory again, since other captions are asked for. */
int smalti_dataset_source_list(struct smalti_dataset_source *source, struct smalti_error *error);
/* The directory that relative paths of images are below: `image_root`, or where PixArt or the user has them.
 * What is no `list` has its images in it. For free(); NULL with an error. */
char *smalti_dataset_source_images(const struct smalti_dataset_source *source, bool list,
				   const char *image_root, struct smalti_error *error);
void smalti_dataset_source_close(struct smalti_dataset_source *source);

#endif
