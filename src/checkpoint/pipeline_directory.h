/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* What is often given in place of a pipeline's directory is named, with what to do about it. 0, or -1 with
 * SMALTI_EIO or SMALTI_EUNSUPPORTED. */

/* A directory is there: no name on a hub, no single file, and not Hugging Face's cache around a model. */
int smalti_pipeline_directory_check(const char *directory, struct smalti_error *error);
/* So is one component's, and it does not hold LoRA weights alone. Whether it is there its files say. */
int smalti_component_check(const char *directory, struct smalti_error *error);
/* It has a model_index.json, too: it is no single component. */
int smalti_pipeline_check(const char *directory, struct smalti_error *error);

/* The bytes of a file are not a pointer that Git LFS left in its place. */
int smalti_pointer_check(const void *bytes, size_t length, struct smalti_error *error);
