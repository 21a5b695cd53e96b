/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"
#include "cli/help.h"

#include <ctype.h>

/* Calls `visit` for the command and, after it, for all that are below it. */
static void walk(const struct smalti_command *command, FILE *to,
		 void (*visit)(const struct smalti_command *command, FILE *to))
{
	visit(command, to);
	for (int i = 0; command->commands && command->commands[i]; i++)
		walk(command->commands[i], to, visit);
}

/* Returns the next of the command's own options, then of the common ones; NULL behind the last. */
static const struct smalti_option *next_option(const struct smalti_command *command, int *at)
{
	const int own = command->options.count;
	while (*at < own && command->options.rows[*at].kind == SMALTI_OPTION_GROUP)
		(*at)++;
	const int i = (*at)++;
	if (i < own)
		return &command->options.rows[i];
	return i < own + SMALTI_COMMON_OPTIONS ? &smalti_common_options[i - own] : NULL;
}

static void put_choices(const struct smalti_option *option, FILE *to)
{
	for (int i = 0; option->choices[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", option->choices[i]);
}

/* Puts a backslash before each of the characters in `special`. */
static void put_escaped(const char *text, const char *special, FILE *to)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			fputc('\\', to);
		fputc(*text == '\n' ? ' ' : *text, to);
	}
}

/* Writes "_smalti_retrieve_index". */
static void put_function(const char *name, FILE *to)
{
	fputc('_', to);
	for (; *name; name++)
		fputc(isalnum((unsigned char)*name) ? *name : '_', to);
}

static void put_bash_path(const struct smalti_command *command, FILE *to)
{
	if (strchr(command->name, ' '))
		fprintf(to, "        '%s') path=\"$path ${COMP_WORDS[i]}\" ;;\n", command->name);
}

/* Writes what may follow each option. */
static void put_bash_values(const struct smalti_command *command, FILE *to)
{
	const struct smalti_option *option;
	int at = 0;
	while ((option = next_option(command, &at))) {

		if (!option->argument)
			continue;
		fprintf(to, "    '%s --%s'", command->name, option->name);
		if (option->letter)
			fprintf(to, " | '%s -%c'", command->name, option->letter);
		fputs(option->choices ? ") words='" : ") return ;;\n", to);
		if (option->choices) {
			put_choices(option, to);
			fputs("' ;;\n", to);
		}
	}
}

static void put_bash_words(const struct smalti_command *command, FILE *to)
{
	const struct smalti_option *option;
	int at = 0;
	fprintf(to, "        '%s') ", command->name);
	fputs(command->commands ? "words='" : "[[ $current == -* ]] && words='", to);
	for (int i = 0; command->commands && command->commands[i]; i++)
		fprintf(to, "%s ", smalti_command_word(command->commands[i]));
	while ((option = next_option(command, &at)))
		fprintf(to, "--%s%s ", option->name, option->argument ? "=" : "");
	fputs("' ;;\n", to);
}

/* Bash takes "--name=value" for three words. */
static void print_bash(const struct smalti_command *program, FILE *to)
{
	put_function(program->name, to);
	fprintf(to,
		"() {\n"
		"    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} "
		"path='%s' words='' i\n"
		"    COMPREPLY=()\n"
		"    if [[ $current == = ]]; then\n"
		"        current=\n"
		"    elif [[ $previous == = ]]; then\n"
		"        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
		"    fi\n"
		"    for ((i = 1; i < COMP_CWORD; i++)); do\n"
		"        case \"$path ${COMP_WORDS[i]}\" in\n",
		program->name);
	walk(program, to, put_bash_path);
	fputs("        esac\n    done\n    case \"$path $previous\" in\n", to);
	walk(program, to, put_bash_values);
	fputs("    *)\n        case $path in\n", to);
	walk(program, to, put_bash_words);
	fputs("        esac\n        ;;\n    esac\n"
	      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\" || :)\n"
	      "    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2>/dev/null || :; fi\n"
	      "}\ncomplete -o default -F ",
	      to);
	put_function(program->name, to);
	fprintf(to, " %s\n", program->name);
}

/* Writes '*--name=[what it does]:ARGUMENT:(one other)'. */
static void put_zsh_spec(const struct smalti_option *option, bool letter, FILE *to)
{
	fprintf(to, " \\\n        '%s-", option->kind == SMALTI_OPTION_LIST ? "*" : "");
	if (letter)
		fputc(option->letter, to);
	else
		fprintf(to, "-%s", option->name);
	fprintf(to, "%s[", !option->argument ? "" : letter ? "+" : "=");
	for (const char *at = option->help; *at; at++)
		fputs(*at == '\''  ? "'\\''"
		      : *at == '[' ? "\\["
		      : *at == ']' ? "\\]"
				   : (char[]){*at, '\0'},
		      to);
	fputc(']', to);
	if (option->argument) {
		fputc(':', to);
		put_escaped(option->argument, ":[]", to);
		fputs(option->choices ? ":(" : ":_files", to);
	}
	if (option->choices) {
		put_choices(option, to);
		fputc(')', to);
	}
	fputc('\'', to);
}

static void put_zsh_function(const struct smalti_command *command, FILE *to)
{
	const struct smalti_option *option;
	int at = 0;
	put_function(command->name, to);
	fputs("() {\n", to);
	if (command->commands)
		fputs("    local line\n", to);
	fprintf(to, "    _arguments%s", command->commands ? " -C" : "");
	while ((option = next_option(command, &at))) {

		put_zsh_spec(option, false, to);
		if (option->letter)
			put_zsh_spec(option, true, to);
	}
	if (!command->commands) {
		fputs(" \\\n        '*:file:_files'\n}\n", to);
		return;
	}
	fputs(" \\\n        '1:command:(", to);
	for (int i = 0; command->commands[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", smalti_command_word(command->commands[i]));
	fputs(")' \\\n        '*::argument:->rest'\n    case $line[1] in\n", to);
	for (int i = 0; command->commands[i]; i++) {
		fprintf(to, "    %s) ", smalti_command_word(command->commands[i]));
		put_function(command->commands[i]->name, to);
		fputs(" ;;\n", to);
	}
	fputs("    esac\n}\n", to);
}

/* Writes what eval reads, or what zsh finds as a file named _smalti and runs when it completes for the first
 * time. */
static void print_zsh(const struct smalti_command *program, FILE *to)
{
	fprintf(to, "#compdef %s\n", program->name);
	walk(program, to, put_zsh_function);
	fputs("if [[ ${funcstack[1]} == ", to);
	put_function(program->name, to);
	fputs(" ]]; then\n    ", to);
	put_function(program->name, to);
	fputs(" \"$@\"\nelse\n    compdef ", to);
	put_function(program->name, to);
	fprintf(to, " %s\nfi\n", program->name);
}

/* Writes "complete -c smalti -n 'CONDITION'", which holds behind the words of the command and none below
 * it. */
static void put_fish_condition(const struct smalti_command *command, FILE *to)
{
	const char *end = strchr(command->name, ' ');
	const char *separator = "";
	fprintf(to, "complete -c %.*s -n '",
		(int)(end ? end - command->name : (ptrdiff_t)strlen(command->name)), command->name);
	while (end) {
		const char *word = end + 1;
		end = strchr(word, ' ');
		fprintf(to, "%s__fish_seen_subcommand_from %.*s", separator,
			(int)(end ? end - word : (ptrdiff_t)strlen(word)), word);
		separator = "; and ";
	}
	if (command->commands)
		fprintf(to, "%snot __fish_seen_subcommand_from", separator);
	for (int i = 0; command->commands && command->commands[i]; i++)
		fprintf(to, " %s", smalti_command_word(command->commands[i]));
	fputc('\'', to);
}

static void put_fish_lines(const struct smalti_command *command, FILE *to)
{
	const struct smalti_option *option;
	int at = 0;
	for (int i = 0; command->commands && command->commands[i]; i++) {
		put_fish_condition(command, to);
		fprintf(to, " -f -a %s -d '", smalti_command_word(command->commands[i]));
		put_escaped(command->commands[i]->summary, "\\'", to);
		fputs("'\n", to);
	}
	while ((option = next_option(command, &at))) {

		put_fish_condition(command, to);
		fprintf(to, " -l %s", option->name);
		if (option->letter)
			fprintf(to, " -s %c", option->letter);
		if (option->argument)
			fputs(option->choices ? " -x -a '" : " -r", to);
		if (option->choices) {
			put_choices(option, to);
			fputc('\'', to);
		}
		fputs(" -d '", to);
		put_escaped(option->help, "\\'", to);
		fputs("'\n", to);
	}
}

static void print_fish(const struct smalti_command *program, FILE *to)
{
	walk(program, to, put_fish_lines);
}

const char *const smalti_completion_shells[] = {"bash", "zsh", "fish", NULL};

void smalti_print_completion(const struct smalti_command *program, int shell, FILE *to)
{
	static void (*const printers[])(const struct smalti_command *, FILE *) = {print_bash, print_zsh,
										  print_fish};
	printers[shell](program, to);
}
