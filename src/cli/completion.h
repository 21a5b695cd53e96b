/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"

/* Names of shells, ended by NULL. */
extern const char *const smalti_completion_shells[];

/* Prints what a shell (by its index in the names) reads to complete the words of a program: its commands,
 * options and their choices, from the tables of the help. */
void smalti_print_completion(const struct smalti_command *program, int shell, FILE *to);
