/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* The files of a directory. The directory's description, a sealed JSON object, has their checksums: in
 * "files", by name. */

/* Adds the file's present checksum. */
int smalti_files_add(cJSON *description, const char *directory, const char *name, struct smalti_error *error);
/* Checks a file. SMALTI_EFORMAT: the description, a file called `described`, has no checksum of it;
 * SMALTI_ECORRUPT: another; `remedy` ends the message. */
int smalti_files_check(const cJSON *description, const char *described, const char *directory,
		       const char *name, const char *remedy, struct smalti_error *error);
/* Returns the checksum in the description; "": none. */
const char *smalti_files_digest(const cJSON *description, const char *name);

/* Finds the f32 tensor of that name and shape in the file at `path`. */
int smalti_files_tensor(const struct smalti_safetensors *file, const char *path, const char *name, int rank,
			const int64_t *shape, const float **values, struct smalti_error *error);
