/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"

/* Tiles to and from safetensors files. A file's digest is that of its header, begun with that of its tensors'
 * bytes. */

/* The file is synced and read back. */
int smalti_tiles_write(const char *path, struct smalti_task_group *task_group,
		       const struct smalti_parameter *list, int64_t count, uint64_t *digest,
		       struct smalti_error *error);
/* SMALTI_ECORRUPT, or SMALTI_EFORMAT, where the file is not that of the digest; SMALTI_EINVAL where it is,
 * but has other tensors than the list. With `bare` the digest is of the tensors' bytes alone. */
int smalti_tiles_read(const char *path, struct smalti_task_group *task_group,
		      const struct smalti_parameter *list, int64_t count, uint64_t digest, bool bare,
		      struct smalti_error *error);
