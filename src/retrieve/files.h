/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* Files of a directory that its description, a sealed JSON object, has the checksums of: in "files", by name.
 */

/* As the file is now. */
int smalti_files_add(cJSON *description, const char *directory, const char *name, struct smalti_error *error);
/* SMALTI_EFORMAT: the description, a file called `described`, has no checksum of it; SMALTI_ECORRUPT: it is
 * another; `remedy` ends the message. */
int smalti_files_check(const cJSON *description, const char *described, const char *directory,
		       const char *name, const char *remedy, struct smalti_error *error);
/* The checksum that the description has; "": none. */
const char *smalti_files_digest(const cJSON *description, const char *name);

/* The f32 tensor of that name and shape in the file at `path`. */
int smalti_files_tensor(const struct smalti_safetensors *file, const char *path, const char *name, int rank,
			const int64_t *shape, const float **values, struct smalti_error *error);
