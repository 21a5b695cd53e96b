/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Data sets for tests, with equal items in every format. */

enum { DATASET_CAPTIONS = 2 };

struct dataset_item {
	const char *path;                       /* the image's; its bytes are this text */
	const char *captions[DATASET_CAPTIONS]; /* under dataset_keys[] */
};
extern const char *const dataset_keys[DATASET_CAPTIONS];

/* Writes a file below the directory, and makes its directories. */
void dataset_write_file(const char *directory, const char *path, const void *bytes, size_t length);

/* A format: its file below the directory, "" for the directory itself. */
struct dataset_format {
	const char *name, *file;
	void (*write)(const char *directory, const struct dataset_item *items, int count);
};
enum { DATASET_FORMATS = 6 };
extern const struct dataset_format dataset_formats[DATASET_FORMATS];

/* Opens a file below the directory ("": the directory) for the captions under dataset_keys[]. */
struct smalti_dataset *dataset_open(const char *directory, const char *file, bool images,
				    struct smalti_error *error);

/* Writes a member of a tar: a header, the bytes, and padding. `type` as in the header: '0' is a file. */
void dataset_write_member(FILE *tar, char type, const char *name, const void *bytes, size_t length);
/* Writes only the header, of a member that claims so many bytes. */
void dataset_tar_header(unsigned char block[512], char type, const char *name, uint64_t bytes);
