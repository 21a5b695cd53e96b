/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include "base/alloc.h"
#include "cli/help.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum smalti_exit smalti_usage_error(const struct smalti_command *command, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "smalti %s: ", command->name);
	vfprintf(stderr, format, args);
	fprintf(stderr, "; try 'smalti %s --help'\n", command->name);
	va_end(args);
	return SMALTI_EXIT_USAGE;
}

enum smalti_exit smalti_finish_stdout(void)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("smalti: standard output");
		return SMALTI_EXIT_FAILED;
	}
	return SMALTI_EXIT_OK;
}

static enum smalti_exit answer(const struct smalti_command *command, enum smalti_invocation request)
{
	if (request == SMALTI_VERSION)
		smalti_print_version(stdout);
	else if (request == SMALTI_MAN)
		smalti_print_man(command, stdout);
	else
		smalti_print_help(command, stdout);
	return smalti_finish_stdout();
}

enum smalti_exit smalti_command_run(const struct smalti_command *command, int argc, char **argv)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	enum smalti_invocation request;
	int first;
	void *options = smalti_calloc(1, (int64_t)command->size, &error);
	if (!options) {
		fprintf(stderr, "smalti %s: %s\n", command->name, error.message);
		return SMALTI_EXIT_FAILED;
	}
	memcpy(options, command->defaults, command->size);
	enum smalti_exit status;
	if (smalti_options_parse(&command->options, argc, argv, options, &request, &first, &error))
		status = smalti_usage_error(command, "%s", error.message);
	else if (request != SMALTI_RUN)
		status = answer(command, request);
	else
		status = command->run(options, argc - first, argv + first);
	smalti_options_free(&command->options, options);
	free(options);
	return status;
}
