/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <limits.h>

/* Where a file or directory lies that belongs to the program, by its name in the repository: beside the build
 * tree, or where it was installed. False, with the path that was tried last, when it is nowhere. */
bool smalti_find_shipped(const char *name, char path[PATH_MAX]);
/* The first of these paths, seen from the directory of the running program, that is there. */
bool smalti_find_beside(const char *const *paths, int count, char path[PATH_MAX]);
