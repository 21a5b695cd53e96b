/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "cli/generate_options.h"
#include "cli/help.h"
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

static const struct smalti_command *const commands[] = {
    &smalti_generate_command,
    &smalti_topology_command,
    NULL,
};

static const struct smalti_command *find_command(const char *name)
{
	for (int i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	struct smalti_suggestion best = smalti_suggest_start(name, (int)strlen(name));
	for (int i = 0; commands[i]; i++)
		smalti_suggest(&best, commands[i]->name);
	fprintf(stderr, "smalti: unknown command '%s'", name);
	if (best.name)
		fprintf(stderr, ", did you mean '%s'?", best.name);
	fputs("; try 'smalti --help'\n", stderr);
	return NULL;
}

static enum smalti_exit show_help(const char *name)
{
	const struct smalti_command *command = name ? find_command(name) : NULL;
	if (name && !command)
		return SMALTI_EXIT_USAGE;
	if (command)
		smalti_print_help(command, stdout);
	else
		smalti_print_overview(commands, stdout);
	return smalti_finish_stdout();
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		smalti_print_overview(commands, stderr);
		return SMALTI_EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "--version") == 0) {
		smalti_print_version(stdout);
		return smalti_finish_stdout();
	}
	if (strcmp(name, "--man") == 0) {
		smalti_print_overview_man(commands, stdout);
		return smalti_finish_stdout();
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return show_help(NULL);
	if (strcmp(name, "help") == 0)
		return show_help(argv[2]);
	const struct smalti_command *command = find_command(name);
	return command ? smalti_command_run(command, argc - 1, argv + 1) : SMALTI_EXIT_USAGE;
}
