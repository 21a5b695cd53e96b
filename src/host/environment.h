/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "host/machine.h"

/* Checks StarPU's environment variables before it starts: StarPU ends the program over values that it cannot
 * use. -1 with SMALTI_EINVAL, which names the variable. */
int smalti_environment_check(const struct smalti_machine_cpus *cpus, struct smalti_error *error);

/* Returns the user's limit on tiles in bytes; 0: none. */
int64_t smalti_environment_memory(void);

/* Tells whether a limit on any device of a driver is below this. */
bool smalti_environment_limits(int driver, int64_t megabytes);

/* Changes of the environment while StarPU starts. Initialise with zeros. */
enum { SMALTI_MAX_CHANGES = 21 };
struct smalti_environment {
	struct {
		const char *name;
		char *before; /* NULL: it was not set */
	} changes[SMALTI_MAX_CHANGES];
	int count;
};

/* Sets a variable; NULL: unsets it. `name` must outlive the change. */
int smalti_environment_set(struct smalti_environment *environment, const char *name, const char *value,
			   struct smalti_error *error);
/* Hides the limits on memory: StarPU would wait for ever for memory beyond them. */
int smalti_environment_hide_memory(struct smalti_environment *environment, struct smalti_error *error);
/* Hides hwloc's plugin for OpenCL, which opens its drivers. */
int smalti_environment_hide_plugin(struct smalti_environment *environment, struct smalti_error *error);
void smalti_environment_restore(struct smalti_environment *environment);
