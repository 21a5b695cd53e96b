/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "smalti/model.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `directory` below the directory of the running program, if it is there. */
static bool beside_program(const char *directory, char path[PATH_MAX])
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (length < 0)
		return false;
	program[length] = '\0';
	*strrchr(program, '/') = '\0';
	int needed = snprintf(path, PATH_MAX, "%s/%s", program, directory);
	return needed < PATH_MAX && access(path, R_OK) == 0;
}

const char *smalti_embedded_model(struct smalti_error *error)
{
	SMALTI_REPORT(error);
	/* the build tree (libtool runs programs from .libs), then a relocated installation */
	static const char *const near[] = {"../models/tesserae", "../../models/tesserae",
					   "../share/smalti/models/tesserae"};
	static char path[PATH_MAX];
	const char *chosen = getenv("SMALTI_MODEL_DIR");
	if (chosen && *chosen)
		return chosen;
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
		if (beside_program(near[i], path))
			return path;
	snprintf(path, sizeof(path), "%s/models/tesserae", SMALTI_DATADIR);
	if (access(path, R_OK) == 0)
		return path;
	smalti_fail(
	    error, SMALTI_EIO,
	    "the embedded model is neither beside the program nor in %s; name a model directory, or set "
	    "SMALTI_MODEL_DIR",
	    path);
	return NULL;
}
