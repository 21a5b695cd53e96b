/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* NumPy's files of one array, as numpy.save() writes them: format 1.0, 2.0 and 3.0, little-endian floats of
 * 2, 4 or 8 bytes, in C order. */

bool smalti_is_npy(const void *data, int64_t size);

/* Parses a file in memory: `view` points into it, has no name, and names its dtype as safetensors does
 * ("F16", "F32", "F64"). Other types and orders are EUNSUPPORTED. */
int smalti_npy_parse(const void *data, int64_t size, struct smalti_tensor_view *view,
		     struct smalti_error *error);

/* Writes an f32 array (rank, shape and data are read) to a new file, all or nothing. */
int smalti_npy_write(const char *path, const struct smalti_tensor_view *array, struct smalti_error *error);

/* Writes the header before an array's values in C order; returns its bytes, a multiple of 64. `descr` is
 * "<f4", "<f2", "<i2" and so on. 0: the extents have too many digits. */
enum { SMALTI_NPY_HEADER = 512 };
int64_t smalti_npy_header(const char *descr, int rank, const int64_t *shape, char header[SMALTI_NPY_HEADER]);
