/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* These checks recognise what users often give instead of a pipeline's directory; the error says what to do.
 * They return 0, or -1 with SMALTI_EIO or SMALTI_EUNSUPPORTED. */

/* Checks that a directory exists. It may not be a name on a hub, a single file, or the folder of Hugging
 * Face's cache around a model. */
int smalti_pipeline_directory_check(const char *directory, struct smalti_error *error);
/* Checks one component's directory likewise; it may not hold LoRA weights alone. Later reads tell whether it
 * exists. */
int smalti_component_check(const char *directory, struct smalti_error *error);
/* Checks also that it has a model_index.json: a single component has none. */
int smalti_pipeline_check(const char *directory, struct smalti_error *error);

/* Checks that the bytes of a file are not a pointer that Git LFS left in its place. */
int smalti_pointer_check(const void *bytes, size_t length, struct smalti_error *error);
