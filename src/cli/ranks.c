/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ranks.h"
#include "ranks/ranks.h"

static const struct smalti_command *started;

static void print(const struct smalti_error *error)
{
	fprintf(stderr, "%s: %s\n", started->name, error->message);
}

int smalti_command_ranks_start(const struct smalti_command *command, struct smalti_error *error)
{
	started = command;
	return smalti_ranks_start(print, error);
}

enum smalti_exit smalti_command_ranks_fail(const struct smalti_command *command,
					   const struct smalti_error *error)
{
	return smalti_ranks_own() == 0        ? smalti_command_fail(command, error)
	       : error->code == SMALTI_EINVAL ? SMALTI_EXIT_USAGE
					      : SMALTI_EXIT_FAILED;
}
