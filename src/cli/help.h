/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"

extern const char smalti_about[];

/* A name and its meaning; a NULL name ends a list. The variables are those of the environment that are
 * read. */
struct smalti_help_item {
	const char *name, *meaning;
};
extern const struct smalti_help_item smalti_variables[];

/* Files that the program reads and writes unasked, ended likewise. */
extern const struct smalti_help_item smalti_files[];

extern const char smalti_exit_statuses[];

/* The options of every command: --help, --version. */
enum { SMALTI_COMMON_OPTIONS = 2 };
extern const struct smalti_option smalti_common_options[SMALTI_COMMON_OPTIONS];

/* What follows from a row: "from 1 to 1000; default 20", "one of a, b", "may be repeated". */
struct smalti_notes {
	char text[512];
};
struct smalti_notes smalti_option_notes(const struct smalti_option *row, const void *defaults);

/* Prints words from `column` on within 79 columns and indents the next lines. Newlines in the text stay, and
 * another ends it. */
void smalti_print_wrapped(FILE *to, const char *text, int column, int indent);

/* Print a command's --help, wrapped at 79 columns, and its man page (roff), from the same tables. Those of a
 * group list its commands. */
void smalti_print_help(const struct smalti_command *command, FILE *to);
void smalti_print_man(const struct smalti_command *command, FILE *to);
