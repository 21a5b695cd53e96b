/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shipped.h"

bool smalti_find_beside(const char *const *paths, int count, char path[PATH_MAX])
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (length < 0)
		return false;
	program[length] = '\0';
	*strrchr(program, '/') = '\0';
	for (int i = 0; i < count; i++) {
		const int needed = snprintf(path, PATH_MAX, "%s/%s", program, paths[i]);
		if (needed < PATH_MAX && access(path, R_OK) == 0)
			return true;
	}
	return false;
}

bool smalti_find_shipped(const char *name, char path[PATH_MAX])
{
	/* the build tree (libtool runs programs from .libs), then a relocated installation */
	static const char *const above[] = {"..", "../..", "../share/smalti", "../../share/smalti"};
	for (size_t i = 0; i < COUNT_OF(above); i++) {
		char relative[PATH_MAX];
		const char *const only = relative;
		snprintf(relative, sizeof(relative), "%s/%s", above[i], name);
		if (smalti_find_beside(&only, 1, path))
			return true;
	}
	snprintf(path, PATH_MAX, "%s/%s", SMALTI_DATADIR, name);
	return access(path, R_OK) == 0;
}
