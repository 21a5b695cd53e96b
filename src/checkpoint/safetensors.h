/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/coding.h"

enum { SMALTI_MAX_RANK = 8 };

/* One tensor in the mapped file: row-major, little-endian, at any alignment. */
struct smalti_tensor_view {
	const char *name;
	enum smalti_dtype dtype;
	int rank;
	int64_t shape[SMALTI_MAX_RANK]; /* 0 or more */
	const void *data;
	int64_t bytes;
	bool usable;        /* false: its dtype is not in `enum smalti_dtype`; it can be listed, not read */
	const char *stored; /* the dtype's name in the file: "F64" */
	/* How it can be read if it is not usable, with what else a checkpoint has for it:
	 * smalti_tensor_values(). @{ */
	const struct smalti_coding *coding; /* NULL: not at all */
	struct smalti_tensor_scale scale;
	/* @} */
};

/* A safetensors file (docs/reference.md 1.2), checked as a whole when it is opened: every view lies in the
 * file, the views cover it without overlap or hole, and each name is there once. */
struct smalti_safetensors {
	struct smalti_map map;
	cJSON *header;                      /* owns the names */
	struct smalti_tensor_view *tensors; /* in bytewise order of their names */
	int64_t count;
};

struct smalti_safetensors *smalti_safetensors_open(const char *path, struct smalti_error *error);
/* Parses `size` bytes of memory, which the caller keeps until after the close. */
struct smalti_safetensors *smalti_safetensors_parse(const void *data, int64_t size,
						    struct smalti_error *error);
void smalti_safetensors_close(struct smalti_safetensors *file);
/* Checks, after reading, as smalti_map_check(). */
int smalti_safetensors_check(const struct smalti_safetensors *file, struct smalti_error *error);

/* Returns NULL when there is no tensor of that name. */
const struct smalti_tensor_view *smalti_safetensors_find(const struct smalti_safetensors *file,
							 const char *name);

/* Writes the views (name, dtype, rank, shape and data are read) to a new file, all or nothing. */
int smalti_safetensors_write(const char *path, const struct smalti_tensor_view *tensors, int count,
			     struct smalti_error *error);

/* Returns elements `first` to `first + count` of tensor `index` in its dtype, valid until the next call. NULL
 * with an error ends the writing. */
typedef const void *smalti_tensor_source(void *user, int index, int64_t first, int64_t count,
					 struct smalti_error *error);
enum { SMALTI_SOURCE_ELEMENTS = 1 << 18 }; /* the largest `count` */

/* Writes tensors that are nowhere as a whole: `source` gives each in pieces, from the first element of the
 * first tensor to the last of the last. The views' `data` is not used. NULL source: a hole of zeros. */
int smalti_safetensors_stream(const char *path, const struct smalti_tensor_view *tensors, int count,
			      smalti_tensor_source *source, void *user, struct smalti_error *error);
/* Does as smalti_safetensors_stream(), with metadata: an object of strings. A view may have a coding of
 * safetensors. */
int smalti_safetensors_stream_with(const char *path, const cJSON *metadata,
				   const struct smalti_tensor_view *tensors, int count,
				   smalti_tensor_source *source, void *user, struct smalti_error *error);
