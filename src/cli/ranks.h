/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"

/* What commands share that run over the ranks of an MPI job (ranks/ranks.h). */

/* Starts the ranks of a command. */
int smalti_command_ranks_start(const struct smalti_command *command, struct smalti_error *error);
/* Returns the exit status of a failure that all ranks know of, which rank 0 prints. */
enum smalti_exit smalti_command_ranks_fail(const struct smalti_command *command,
					   const struct smalti_error *error);
