/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

enum { WIDTH = 79, HELP_COLUMN = 29 };

const char smalti_about[] =
    "Runs PixArt text-to-image models as task graphs over all the CPUs and GPUs of a machine.";

const struct smalti_help_item smalti_variables[] = {
    {"SMALTI_MAX_ISA", "highest instruction set to use: generic, avx2, avx512, avx512_bf16 or amx"},
    {"SMALTI_MODEL_DIR", "directory of the default model"},
    {"SMALTI_SLOWDOWN",
     "how many times as long tasks take on some workers, for experiments: \"cpu1:3,opencl0:2.5\""},
    {"STARPU_*", "settings of StarPU, which override the options"},
    {NULL, NULL},
};

const struct smalti_help_item smalti_files[] = {
    {"~/.starpu", "what StarPU has measured of the machine and of tasks, by which it schedules "
		  "($STARPU_HOME); a temporary directory where it cannot be written to"},
    {"share/smalti/models", "beside the program's bin: the embedded model"},
    {NULL, NULL},
};

const char smalti_exit_statuses[] =
    "0 success, 1 failure or work that a signal cut short, 2 wrong usage, 3 finished but some items failed.";

const struct smalti_option smalti_common_options[SMALTI_COMMON_OPTIONS] = {
    {.kind = SMALTI_OPTION_FLAG, .name = "help", .letter = 'h', .help = "show this help and exit"},
    {.kind = SMALTI_OPTION_FLAG, .name = "version", .letter = 'V', .help = "show the version and exit"},
};

void smalti_print_wrapped(FILE *to, const char *text, int column, int indent)
{
	bool fresh = true;
	while (*text) {
		int length = (int)strcspn(text, " \n");
		if (!fresh && column + 1 + length > WIDTH) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
			fresh = true;
		}
		fprintf(to, "%s%.*s", fresh ? "" : " ", length, text);
		column += length + !fresh;
		fresh = false;
		text += length;
		for (; *text == '\n'; text++) {
			fprintf(to, "\n%*s", text[1] == '\n' ? 0 : indent, "");
			column = indent;
			fresh = true;
		}
		text += *text == ' ';
	}
	fputc('\n', to);
}

static void print_row(const struct smalti_option *row, const void *defaults, FILE *to)
{
	if (row->kind == SMALTI_OPTION_GROUP) {
		fprintf(to, "\n%s:\n", row->name);
		return;
	}
	int column = row->letter ? fprintf(to, "  -%c, --%s", row->letter, row->name)
				 : fprintf(to, "      --%s", row->name);
	if (row->argument)
		column += fprintf(to, "=%s", row->argument);
	if (column + 2 > HELP_COLUMN) {
		fputc('\n', to);
		column = 0;
	}
	fprintf(to, "%*s", HELP_COLUMN - column, "");
	struct smalti_notes notes = smalti_option_notes(row, defaults);
	char text[2048];
	snprintf(text, sizeof(text), notes.text[0] ? "%s (%s)" : "%s%s", row->help, notes.text);
	smalti_print_wrapped(to, text, HELP_COLUMN, HELP_COLUMN);
}

static void print_variables(FILE *to)
{
	fputs("\nEnvironment:\n", to);
	for (const struct smalti_help_item *variable = smalti_variables; variable->name; variable++) {
		fprintf(to, "  %-17s ", variable->name);
		smalti_print_wrapped(to, variable->meaning, 20, 20);
	}
}

static void print_statuses(FILE *to)
{
	fputs("\nExit status:\n  ", to);
	smalti_print_wrapped(to, smalti_exit_statuses, 2, 2);
}

static void print_group(const struct smalti_command *group, FILE *to)
{
	fprintf(to, "Usage: %s COMMAND [OPTION]...\n\n", group->name);
	smalti_print_wrapped(to, group->description, 0, 0);
	fputs("\nCommands:\n", to);
	for (int i = 0; group->commands[i]; i++) {
		fprintf(to, "  %-12s ", smalti_command_word(group->commands[i]));
		smalti_print_wrapped(to, group->commands[i]->summary, 15, 15);
	}
	print_variables(to);
	print_statuses(to);
	fprintf(to, "\n'%s help COMMAND' or '%s COMMAND --help' shows the options of a command.\n",
		group->name, group->name);
	if (smalti_is_program(group))
		fprintf(to, "'%s completion SHELL' prints what bash, zsh or fish completes words by.\n",
			group->name);
}

void smalti_print_help(const struct smalti_command *command, FILE *to)
{
	if (command->commands) {
		print_group(command, to);
		return;
	}
	fprintf(to, "Usage: %s [OPTION]...%s%s\n\n", command->name, command->operands[0] ? " " : "",
		command->operands);
	smalti_print_wrapped(to, command->description, 0, 0);
	if (command->options.count && command->options.rows[0].kind != SMALTI_OPTION_GROUP)
		fputs("\nOptions:\n", to);
	for (int i = 0; i < command->options.count; i++)
		print_row(&command->options.rows[i], command->defaults, to);
	fputc('\n', to);
	for (int i = 0; i < SMALTI_COMMON_OPTIONS; i++)
		print_row(&smalti_common_options[i], NULL, to);
	fputs("\nExamples:\n", to);
	for (const struct smalti_example *example = command->examples; example->purpose; example++)
		fprintf(to, "  %s:\n    %s\n", example->purpose, example->line);
	print_statuses(to);
}

#define note(notes, ...) smalti_append((notes)->text, sizeof((notes)->text), "; ", __VA_ARGS__)

/* Maxima that no reader needs. */
enum { HUGE_INT64 = 1 << 30, HUGE_DOUBLE = 1000000 };

static void note_range(struct smalti_notes *notes, const struct smalti_option *row)
{
	if (row->kind == SMALTI_OPTION_INT64 && row->maximum < HUGE_INT64)
		note(notes, "from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
	else if (row->kind == SMALTI_OPTION_INT64)
		note(notes, "%" PRId64 " or more", row->minimum);
	else if (row->kind == SMALTI_OPTION_DOUBLE && row->real_maximum < HUGE_DOUBLE)
		note(notes, "from %g to %g", row->real_minimum, row->real_maximum);
	else if (row->kind == SMALTI_OPTION_DOUBLE)
		note(notes, "%g or more", row->real_minimum);
	else if (row->kind == SMALTI_OPTION_LIST)
		note(notes, "may be repeated");
	const char *first = row->kind == SMALTI_OPTION_INT64 ? "or " : "one of ";
	for (int i = 0; row->choices && row->choices[i]; i++)
		smalti_append(notes->text, sizeof(notes->text), ", ", "%s%s", i ? "" : first,
			      row->choices[i]);
}

/* Tells whether the help text shows this initial value as the default. It does not if the description names a
 * default, or if the value is below the range, which stands for none. */
static bool is_default(const struct smalti_option *row, const void *value)
{
	const bool number = row->kind == SMALTI_OPTION_INT64 || row->kind == SMALTI_OPTION_DOUBLE;
	if (strstr(row->help, "default") || (row->has_given && !number))
		return false;
	return row->choices || (row->kind != SMALTI_OPTION_INT64 && row->kind != SMALTI_OPTION_SIZE) ||
	       *(const int64_t *)value >= row->minimum;
}

static void note_default(struct smalti_notes *notes, const struct smalti_option *row, const void *defaults)
{
	const void *value = (const char *)defaults + row->offset;
	if (!is_default(row, value))
		return;
	const int64_t *size = value;
	const char *string = row->kind == SMALTI_OPTION_STRING ? *(const char *const *)value : NULL;
	if (row->kind == SMALTI_OPTION_INT64)
		note(notes, "default %" PRId64, *(const int64_t *)value);
	else if (row->kind == SMALTI_OPTION_DOUBLE)
		note(notes, "default %g", *(const double *)value);
	else if (row->kind == SMALTI_OPTION_SIZE)
		note(notes, "default %" PRId64 "x%" PRId64, size[0], size[1]);
	else if (row->kind == SMALTI_OPTION_CHOICE && *(const int *)value >= 0)
		note(notes, "default %s", row->choices[*(const int *)value]);
	else if (string)
		note(notes, "default %s", string);
}

struct smalti_notes smalti_option_notes(const struct smalti_option *row, const void *defaults)
{
	struct smalti_notes notes = {""};
	note_range(&notes, row);
	if (defaults)
		note_default(&notes, row, defaults);
	if (row->alias)
		note(&notes, "also --%s", row->alias);
	return notes;
}
