/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "shard/deflate.h"
#include "shard/h5.h"
#include "shard/index.h"

/* Shared by the files that write a shard. */

/* An array on its way: entries in memory, of values at most a chunk of them, those before it in the file. */
struct smalti_array_writer {
	char *buffer; /* of texts: one behind the other, each with its NUL */
	int64_t capacity, used;
	int64_t count;   /* of entries in the buffer */
	int64_t written; /* of entries in the file */
	int64_t entry_bytes;
	int64_t chunk;   /* entries that are written together; 0: all of them at the end */
	int64_t longest; /* of texts, bytes */
	hid_t dataset;
};

struct smalti_shard_writer {
	char *path;
	struct smalti_h5_file file;
	struct smalti_shard_schema schema; /* strings are its own */
	int64_t first, end, rows;
	struct smalti_array_writer arrays[SMALTI_SHARD_ARRAYS];
	struct smalti_deflater deflater;
	bool failed;
};

int smalti_array_append(struct smalti_shard_writer *writer, int array, const void *entries, int64_t count,
			struct smalti_error *error);
/* Counts the entries so far. */
int64_t smalti_array_count(const struct smalti_shard_writer *writer, int array);
int smalti_array_append_text(struct smalti_shard_writer *writer, int array, const char *text,
			     struct smalti_error *error);
/* Writes what is still in memory. The dataset is there afterwards, even if it is empty, and its pieces are
 * those of the place, by HDF5's own account. */
int smalti_array_finish(struct smalti_shard_writer *writer, int array, struct smalti_shard_place *place,
			struct smalti_error *error);
