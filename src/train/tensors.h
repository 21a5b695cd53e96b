/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"

/* Writes tiles to safetensors files and reads them. A file's digest is that of its header, begun with that of
 * its tensors' bytes. */

/* Writes a file, which is synced and read back. All ranks (ranks/ranks.h) call it, with a path on rank 0
 * alone: the others only insert the same tasks. */
int smalti_tiles_write(const char *path, struct smalti_task_group *task_group,
		       const struct smalti_parameter *list, int64_t count, uint64_t *digest,
		       struct smalti_error *error);
/* Reads a file. SMALTI_ECORRUPT, or SMALTI_EFORMAT, if it has another digest; SMALTI_EINVAL if it has other
 * tensors than the list. With `bare` the digest is of the tensors' bytes alone. */
int smalti_tiles_read(const char *path, struct smalti_task_group *task_group,
		      const struct smalti_parameter *list, int64_t count, uint64_t digest, bool bare,
		      struct smalti_error *error);
