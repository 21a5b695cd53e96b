/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"

/* Tiles to and from safetensors files. A file's digest is that of the tensors' bytes in the order of the
 * list. */

/* The file is synced and read back. */
int smalti_tiles_write(const char *path, struct smalti_task_group *task_group,
		       const struct smalti_parameter *list, int64_t count, uint64_t *digest,
		       struct smalti_error *error);
/* SMALTI_ECORRUPT, or SMALTI_EFORMAT, where the file is not that of the digest. */
int smalti_tiles_read(const char *path, struct smalti_task_group *task_group,
		      const struct smalti_parameter *list, int64_t count, uint64_t digest,
		      struct smalti_error *error);
