/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"

/* Names of shells, ended by NULL. */
extern const char *const smalti_completion_shells[];

/* What a shell (by its place in the names) has to read to complete the words of a program: its commands,
 * options and their choices, from the same tables as the help. */
void smalti_print_completion(const struct smalti_command *program, int shell, FILE *to);
