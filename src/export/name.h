/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXPORT_NAME_H
#define SMALTI_EXPORT_NAME_H

#include "base/error.h"

/* The name under which PixArt's multi-scale loader looks for an item's features (docs/reference.md 6.5, 6.6):
 * in its path the last '/' becomes '_', and the extensions of images become `extension`, wherever they stand.
 * Relative, without "." and "//"; SMALTI_EINVAL for one that would lie outside of its directory, is empty, or
 * has a part of more than 255 bytes. NULL with an error; free with free(). */
char *smalti_loader_name(const char *key, const char *extension, struct smalti_error *error);

/* The directory of a caption's features: "caption_features_new" for "prompt", else NAME_caption_features_new,
 * from which "prompt_" is taken away (6.3). */
char *smalti_loader_directory(const char *caption, struct smalti_error *error);

/* Makes the directories of `name` in `directory`. SMALTI_EINVAL where a file is in the way. */
int smalti_make_parents(const char *directory, const char *name, struct smalti_error *error);

#endif
