/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_LOCKED_H
#define SMALTI_CLI_LOCKED_H

#include "cli/command.h"
#include "cli/progress.h"

/* A wait for a directory of features that another process changes just now: said once, when it has become
 * long.
 */
struct smalti_locked {
	const struct smalti_command *command;
	const char *directory;
	bool said;
};

void smalti_locked_say(struct smalti_locked *locked, struct smalti_progress *progress, const char *holder,
		       double seconds);

#endif
