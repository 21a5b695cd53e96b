/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* These checks recognise what users give instead of a pipeline's directory; errors say what to do. 0, or -1
 * with SMALTI_EIO or SMALTI_EUNSUPPORTED. */

/* Checks that a directory exists: no name on a hub, no single file, and not Hugging Face's cache around a
 * model. */
int smalti_pipeline_directory_check(const char *directory, struct smalti_error *error);
/* Checks one component's directory likewise; it may not hold LoRA weights alone. A GGUF file of its
 * weights, too, is a component. Later reads tell whether it exists. */
int smalti_component_check(const char *directory, struct smalti_error *error);
/* Checks also its model_index.json, which a single component lacks. */
int smalti_pipeline_check(const char *directory, struct smalti_error *error);

/* Checks that the bytes of a file are not a pointer that Git LFS left in its place. */
int smalti_pointer_check(const void *bytes, size_t length, struct smalti_error *error);
/* Copies a file of a model, which is no such pointer. */
int smalti_pipeline_copy(const char *from, const char *to, struct smalti_error *error);
