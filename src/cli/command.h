/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"

#include <cjson/cJSON.h>

/* Exit statuses of the command. */
enum smalti_exit {
	SMALTI_EXIT_OK = 0,
	SMALTI_EXIT_FAILED = 1,
	SMALTI_EXIT_USAGE = 2,
	SMALTI_EXIT_SOME_FAILED = 3, /* finished, but some items failed: they are listed */
};

struct smalti_example {
	const char *purpose; /* "Make one image" */
	const char *line;    /* "smalti generate -o star.png 'a red star'" */
};

/* One subcommand: src/cli/NAME.c or bench/NAME_command.c defines it, main.c there lists it. */
struct smalti_command {
	const char *name;        /* what it is called by: "smalti generate", "smalti-bench" */
	const char *summary;     /* for the list of commands: lower case, no full stop */
	const char *description; /* paragraphs separated by "\n\n" */
	/* Of a group, ended by NULL: of what follows it has only `related`. */
	const struct smalti_command *const *commands;
	const char *operands; /* usage of what follows the options: "[PROMPT]...", "" */
	struct smalti_option_table options;
	const struct smalti_example *examples; /* the last one's purpose is NULL */
	const void *defaults;                  /* the option struct before parsing */
	size_t size;                           /* of that struct */
	enum smalti_exit (*run)(void *options, int count, char **operands);
	bool alone;          /* not over several processes of MPI: they would write the same files */
	const char *related; /* the page of another program, for the man page */
};

/* Sets the tables of a command with options. */
#define SMALTI_COMMAND_TABLES(option_rows, example_rows, default_values)                                     \
	.options = {SMALTI_OPTION_TABLE(option_rows)}, .examples = (example_rows),                           \
	.defaults = &(default_values), .size = sizeof(default_values)

extern const struct smalti_command smalti_decode_command, smalti_encode_command, smalti_export_command,
    smalti_extract_command, smalti_generate_command, smalti_quantize_command, smalti_report_command,
    smalti_retrieve_command, smalti_serve_command, smalti_simulate_command, smalti_step_cache_command,
    smalti_topology_command, smalti_train_command, smalti_verify_command;

/* Parses argv (argv[0] is the program or the subcommand's word). Runs the command, or that one of a group, or
 * shows what was asked for. */
enum smalti_exit smalti_command_run(const struct smalti_command *command, int argc, char **argv);

/* Tells whether it is not a command of one. */
bool smalti_is_program(const struct smalti_command *command);

/* Returns a command's own name, without its program's: "kernels" of "smalti-bench kernels". */
const char *smalti_command_word(const struct smalti_command *command);

/* Prints "NAME: ...; try 'NAME --help'" on stderr; returns SMALTI_EXIT_USAGE. */
enum smalti_exit smalti_usage_error(const struct smalti_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports a failure of the command: a usage error if it is SMALTI_EINVAL, else "NAME: ..." on stderr. */
enum smalti_exit smalti_command_fail(const struct smalti_command *command, const struct smalti_error *error);

/* Flushes the standard output. Returns SMALTI_EXIT_FAILED if a terminal or a full disk refused text. */
enum smalti_exit smalti_finish_stdout(void);

/* --json prints one object per line. */

/* Prints and frees the object. If a line cannot be written, *broken becomes true, and the work may end. After
 * that nothing is written. */
void smalti_json_line(cJSON *object, bool *broken);
/* Prints and frees an only object; false: it cannot be written. */
bool smalti_json_print(cJSON *object);

/* Adds "seconds", to the millisecond. */
void smalti_json_add_seconds(cJSON *object, double seconds);
