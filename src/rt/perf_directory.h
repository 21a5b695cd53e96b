/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/environment.h"

/* Where StarPU keeps what it has measured: of the machine, which it needs to start, and of tasks, which some
 * policies go by. It ends the program over a directory that it cannot write to or a file that it cannot read.
 */
struct smalti_perf_directory {
	char *path;
	bool own; /* of this process: removed when it is closed */
};

/* Before starpu_init(), by changes of the environment. Takes the environment's STARPU_PERF_MODEL_DIR, else
 * StarPU's usual directory ($XDG_CACHE_HOME/.starpu, $STARPU_HOME/.starpu, ~/.starpu), else one of its own
 * that is temporary; removes files there that were not completed. -1 with SMALTI_EIO. */
int smalti_perf_directory_open(struct smalti_perf_directory *directory,
			       struct smalti_environment *environment, struct smalti_error *error);
/* Whether there still is room for what StarPU writes when it stops. */
bool smalti_perf_directory_writable(const struct smalti_perf_directory *directory);
/* After starpu_shutdown(). */
void smalti_perf_directory_close(struct smalti_perf_directory *directory);
