/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shipped.h"

#include <dlfcn.h>
#include <link.h>

/* Finds the directory of the file that holds this code: a library, which the loader has a name for, or the
 * program. */
static bool own_directory(char path[PATH_MAX])
{
	static const char here = 0;
	const char *file = "/proc/self/exe";
	struct link_map *map = NULL;
	Dl_info info;
	if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) && map->l_name[0])
		file = map->l_name;
	if (!realpath(file, path))
		return false;
	*strrchr(path, '/') = '\0';
	return true;
}

bool smalti_find_beside(const char *const *paths, int count, char path[PATH_MAX])
{
	char own[PATH_MAX];
	if (!own_directory(own))
		return false;
	for (int i = 0; i < count; i++) {
		const int needed = snprintf(path, PATH_MAX, "%s/%s", own, paths[i]);
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
