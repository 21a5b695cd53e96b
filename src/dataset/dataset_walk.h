/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_DATASET_DATASET_WALK_H
#define SMALTI_DATASET_DATASET_WALK_H

#include "dataset/dataset.h"

#include <stdio.h>

/* What a directory holds for a data set, in a list: of each item a byte that says what it is, its path below
 * the directory, a NUL. */
enum { SMALTI_WALK_IMAGE = 'p', SMALTI_WALK_TEXT = 't', SMALTI_WALK_TAR = 'a' };

enum { SMALTI_WALK_UNREAD = 16 };
struct smalti_walk_counts {
	int64_t images, texts, tars;
	int64_t captions;                   /* those texts that are no JSON */
	int64_t unread[SMALTI_WALK_UNREAD]; /* images of formats that are not read, by their extension */
};

/* Images, tars, and, if images are not asked for, captions without one, whose path is without the
 * extension; in the bytewise order of the names, directory by directory. Names that begin with a dot are
 * passed over, as is a directory that was already there under another name. */
int smalti_dataset_walk(const char *directory, const struct smalti_dataset_options *options, FILE *list,
			struct smalti_walk_counts *counts, struct smalti_error *error);

/* Whether the tars are what the data set is made of; else images and captions are. */
bool smalti_walk_is_of_tars(const struct smalti_walk_counts *counts);
/* One line on what is not read, "" if there is nothing. */
void smalti_walk_note(const struct smalti_walk_counts *counts, char *note, size_t size);

#endif
