/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "base/json.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/options.h"
#include "ranks/ranks.h"
#include "smalti/version.h"

#include <math.h>
#include <stdarg.h>

enum smalti_exit smalti_usage_error(const struct smalti_command *command, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s: ", command->name);
	vfprintf(stderr, format, args);
	fprintf(stderr, "; try '%s --help'\n", command->name);
	va_end(args);
	return SMALTI_EXIT_USAGE;
}

enum smalti_exit smalti_command_fail(const struct smalti_command *command, const struct smalti_error *error)
{
	if (error->code == SMALTI_EINVAL)
		return smalti_usage_error(command, "%s", error->message);
	fprintf(stderr, "%s: %s\n", command->name, error->message);
	return SMALTI_EXIT_FAILED;
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
	if (request == SMALTI_SHOW_VERSION)
		printf("smalti %s\n", smalti_version());
	else if (request == SMALTI_MAN)
		smalti_print_man(command, stdout);
	else
		smalti_print_help(command, stdout);
	return smalti_finish_stdout();
}

bool smalti_is_program(const struct smalti_command *command)
{
	return !strchr(command->name, ' ');
}

const char *smalti_command_word(const struct smalti_command *command)
{
	const char *blank = strrchr(command->name, ' ');
	return blank ? blank + 1 : command->name;
}

/* Returns NULL with a message if there is none. */
static const struct smalti_command *find_command(const struct smalti_command *group, const char *word)
{
	for (int i = 0; group->commands[i]; i++)
		if (strcmp(smalti_command_word(group->commands[i]), word) == 0)
			return group->commands[i];
	struct smalti_suggestion best = smalti_suggest_start(word, (int)strlen(word));
	for (int i = 0; group->commands[i]; i++)
		smalti_suggest(&best, smalti_command_word(group->commands[i]));
	if (best.name)
		smalti_usage_error(group, "unknown command '%.99s', did you mean '%s'?", word, best.name);
	else
		smalti_usage_error(group, "unknown command '%.99s'", word);
	return NULL;
}

/* Shows the help of what `words` name, from a group down. */
static enum smalti_exit show_help(const struct smalti_command *command, int count, char **words)
{
	for (int i = 0; i < count; i++) {
		if (!command->commands)
			return smalti_usage_error(command, "help: unexpected '%.99s'", words[i]);
		if (strcmp(words[i], "help") != 0 && !(command = find_command(command, words[i])))
			return SMALTI_EXIT_USAGE;
	}
	return answer(command, SMALTI_HELP);
}

static enum smalti_exit show_completion(const struct smalti_command *program, int count, char **words)
{
	for (int i = 0; count == 1 && smalti_completion_shells[i]; i++)
		if (strcmp(words[0], smalti_completion_shells[i]) == 0) {
			smalti_print_completion(program, i, stdout);
			return smalti_finish_stdout();
		}
	return smalti_usage_error(program, "completion: expected the name of a shell, bash, zsh or fish");
}

static const struct {
	const char *word;
	enum smalti_invocation request;
} requests[] = {
    {"--version", SMALTI_SHOW_VERSION},
    {"-V", SMALTI_SHOW_VERSION},
    {"version", SMALTI_SHOW_VERSION},
    {"--man", SMALTI_MAN},
    {"--help", SMALTI_HELP},
    {"-h", SMALTI_HELP},
};

static enum smalti_exit run_group(const struct smalti_command *group, int argc, char **argv)
{
	if (argc < 2) {
		smalti_print_help(group, stderr);
		return SMALTI_EXIT_USAGE;
	}
	const char *word = argv[1];
	for (size_t i = 0; i < COUNT_OF(requests); i++)
		if (strcmp(word, requests[i].word) == 0)
			return answer(group, requests[i].request);
	if (strcmp(word, "help") == 0)
		return show_help(group, argc - 2, argv + 2);
	if (strcmp(word, "completion") == 0 && smalti_is_program(group))
		return show_completion(group, argc - 2, argv + 2);
	const struct smalti_command *command = find_command(group, word);
	return command ? smalti_command_run(command, argc - 1, argv + 1) : SMALTI_EXIT_USAGE;
}

enum smalti_exit smalti_command_run(const struct smalti_command *command, int argc, char **argv)
{
	if (command->commands)
		return run_group(command, argc, argv);
	struct smalti_error error = SMALTI_NO_ERROR;
	enum smalti_invocation request;
	int first;
	SCOPED(free) void *options = smalti_calloc(1, (int64_t)command->size, &error);
	if (!options) {
		fprintf(stderr, "%s: %s\n", command->name, error.message);
		return SMALTI_EXIT_FAILED;
	}
	memcpy(options, command->defaults, command->size);
	enum smalti_exit status;
	if (smalti_options_parse(&command->options, argc, argv, options, &request, &first, &error))
		status = smalti_usage_error(command, "%s", error.message);
	else if (request != SMALTI_RUN)
		status = answer(command, request);
	else if (command->alone && smalti_ranks_launched())
		status = smalti_usage_error(
		    command, "it does not run over several processes of MPI: start it without mpirun");
	else
		status = command->run(options, argc - first, argv + first);
	smalti_options_free(&command->options, options);
	return status;
}

void smalti_json_line(cJSON *object, bool *broken)
{
	SCOPED(free) char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!*broken) {
		if (text)
			puts(text);
		*broken = !text || smalti_finish_stdout() != SMALTI_EXIT_OK;
	}
}

bool smalti_json_print(cJSON *object)
{
	bool broken = false;
	smalti_json_line(object, &broken);
	return !broken;
}

void smalti_json_add_seconds(cJSON *object, double seconds)
{
	cJSON_AddNumberToObject(object, "seconds", round(seconds * 1000) / 1000);
}
