/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <limits.h>

/* Finds a file or directory of the program by its name in the repository: beside the build tree, or where it
 * was installed. False, with the path that was tried last, if it is nowhere. */
bool smalti_find_shipped(const char *name, char path[PATH_MAX]);
/* Finds the first of these paths, relative to the directory of the program or, in a program of others, of
 * libsmalti, that exists. */
bool smalti_find_beside(const char *const *paths, int count, char path[PATH_MAX]);
