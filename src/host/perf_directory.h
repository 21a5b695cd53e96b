/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "host/environment.h"

/* The directory of StarPU's measurements: of the machine, which it needs to start, and of tasks, which some
 * policies use. StarPU ends the program over a directory that it cannot write to or a file that it cannot
 * read. */
struct smalti_perf_directory {
	char *path;
	bool own; /* this process's own: removed when it is closed */
};

/* Chooses the directory, before starpu_init(), and sets it in the environment. It is the environment's
 * STARPU_PERF_MODEL_DIR, else StarPU's usual directory ($XDG_CACHE_HOME/.starpu, $STARPU_HOME/.starpu,
 * ~/.starpu), else a temporary one of its own. Removes incomplete files there. -1 with SMALTI_EIO. */
int smalti_perf_directory_open(struct smalti_perf_directory *directory,
			       struct smalti_environment *environment, struct smalti_error *error);
/* Tells whether there still is room for what StarPU writes when it stops. */
bool smalti_perf_directory_writable(const struct smalti_perf_directory *directory);
/* Closes it after starpu_shutdown(). */
void smalti_perf_directory_close(struct smalti_perf_directory *directory);
