/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "base/file.h"
#include "base/json.h"

enum { SMALTI_MAX_RANK = 8 };

/* One tensor where it lies in the mapped file: row-major, little-endian, at any alignment. */
struct smalti_tensor_view {
	const char *name;
	enum smalti_dtype dtype;
	int rank;
	int64_t shape[SMALTI_MAX_RANK]; /* 0 and more */
	const void *data;
	int64_t bytes;
	bool usable;        /* false: of a dtype that `enum smalti_dtype` lacks; it can be listed, not read */
	const char *stored; /* the dtype in the file's words: "F64" */
};

/* A safetensors file (docs/reference.md 1.2), checked whole when it is opened: every view lies in the
 * file, the views cover it without overlap or hole, and no name is there twice. */
struct smalti_safetensors {
	struct smalti_map map;
	cJSON *header;                      /* owns the names */
	struct smalti_tensor_view *tensors; /* in bytewise order of their names */
	int64_t count;
};

struct smalti_safetensors *smalti_safetensors_open(const char *path, struct smalti_error *error);
/* The same on `size` bytes of memory that the caller keeps until after the close. */
struct smalti_safetensors *smalti_safetensors_parse(const void *data, int64_t size,
						    struct smalti_error *error);
void smalti_safetensors_close(struct smalti_safetensors *file);
/* Behind reading from it: as smalti_map_check(). */
int smalti_safetensors_check(const struct smalti_safetensors *file, struct smalti_error *error);

/* NULL when there is none of that name. */
const struct smalti_tensor_view *smalti_safetensors_find(const struct smalti_safetensors *file,
							 const char *name);

/* Writes the views (name, dtype, rank, shape and data are read) to a new file, all or nothing. */
int smalti_safetensors_write(const char *path, const struct smalti_tensor_view *tensors, int count,
			     struct smalti_error *error);

/* Where elements `first` to `first + count` of tensor `index` lie, in its dtype, until the next call. NULL
 * with an error gives the file up. */
typedef const void *smalti_tensor_source(void *user, int index, int64_t first, int64_t count,
					 struct smalti_error *error);
enum { SMALTI_SOURCE_ELEMENTS = 1 << 18 }; /* the largest `count` */

/* The same for tensors that nobody has whole: each comes from its `source` in pieces, from the first element
 * of the first tensor to the last of the last; `data` of the views is not looked at. */
int smalti_safetensors_stream(const char *path, const struct smalti_tensor_view *tensors, int count,
			      smalti_tensor_source *source, void *user, struct smalti_error *error);
