/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"
#include "smalti/version.h"

/* Writes one character of text for roff: a hyphen stays an ASCII hyphen, a backslash or a leading dot or
 * quote is no request, an empty line is a new paragraph. */
static void put_roff(char c, char before, FILE *to)
{
	if (c == '\n' && before == '\n')
		fputs(".PP", to);
	if (before == '\n' && (c == '.' || c == '\''))
		fputs("\\&", to);
	if (c == '-')
		fputc('\\', to);
	fputc(c, to);
	if (c == '\\')
		fputc('e', to);
}

static void put_text(const char *text, FILE *to)
{
	for (char before = '\n'; *text; before = *text++)
		put_roff(*text, before, to);
}

static void put_line(const char *request, const char *text, FILE *to)
{
	fputs(request, to);
	put_text(text, to);
	fputc('\n', to);
}

/* Writes "smalti-bench-kernels". */
static void put_page(const char *name, size_t length, FILE *to)
{
	for (size_t i = 0; i < length; i++)
		put_roff(name[i] == ' ' ? '-' : name[i], ' ', to);
}

static void put_header(const struct smalti_command *command, FILE *to)
{
	const size_t length = strlen(command->name);
	fputs(".TH ", to);
	put_page(command->name, length, to);
	fprintf(to, " 1 \"\" \"smalti %s\" \"User Commands\"\n.SH NAME\n", smalti_version());
	put_page(command->name, length, to);
	put_line(" \\- ", command->summary, to);
}

static void put_option(const struct smalti_option *row, const void *defaults, FILE *to)
{
	if (row->kind == SMALTI_OPTION_GROUP) {
		put_line(".SS ", row->name, to);
		return;
	}
	fputs(".TP\n", to);
	if (row->letter)
		fprintf(to, "\\fB\\-%c\\fR, ", row->letter);
	fputs("\\fB\\-\\-", to);
	put_text(row->name, to);
	fputs("\\fR", to);
	if (row->argument)
		fprintf(to, "=\\fI%s\\fR", row->argument);
	put_line("\n", row->help, to);
	struct smalti_notes notes = smalti_option_notes(row, defaults);
	if (notes.text[0]) {
		fputc('(', to);
		put_text(notes.text, to);
		fputs(")\n", to);
	}
}

static void put_variables(const char *heading, const struct smalti_help_item *variables, FILE *to)
{
	put_line(".SH ", heading, to);
	for (const struct smalti_help_item *variable = variables; variable->name; variable++) {
		put_line(".TP\n.B ", variable->name, to);
		put_line("", variable->meaning, to);
	}
}

static void put_statuses(FILE *to)
{
	put_line(".SH EXIT STATUS\n", smalti_exit_statuses, to);
}

/* Writes ".BR smalti\-encode (1)". */
static void put_reference(const char *name, size_t length, const char *after, FILE *to)
{
	fputs(".BR ", to);
	put_page(name, length, to);
	fprintf(to, " (1)%s\n", after);
}

static void put_group(const struct smalti_command *group, FILE *to)
{
	put_header(group, to);
	put_line(".SH SYNOPSIS\n.B ", group->name, to);
	fputs("\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n", to);
	put_line(".SH DESCRIPTION\n", group->description, to);
	fputs(".SH COMMANDS\n", to);
	for (int i = 0; group->commands[i]; i++) {
		fputs(".TP\n", to);
		put_reference(group->commands[i]->name, strlen(group->commands[i]->name), "", to);
		put_line("", group->commands[i]->summary, to);
	}
	put_variables("ENVIRONMENT", smalti_variables, to);
	put_variables("FILES", smalti_files, to);
	put_statuses(to);
	fputs(".SH SEE ALSO\n", to);
	for (int i = 0; group->commands[i]; i++)
		put_reference(group->commands[i]->name, strlen(group->commands[i]->name), ",", to);
	put_reference(group->related, strlen(group->related), "", to);
}

void smalti_print_man(const struct smalti_command *command, FILE *to)
{
	if (command->commands) {
		put_group(command, to);
		return;
	}
	put_header(command, to);
	put_line(".SH SYNOPSIS\n.B ", command->name, to);
	fputs("[\\fIOPTION\\fR]...\n", to);
	put_line("", command->operands, to);
	put_line(".SH DESCRIPTION\n", command->description, to);
	fputs(".SH OPTIONS\n", to);
	for (int i = 0; i < command->options.count; i++)
		put_option(&command->options.rows[i], command->defaults, to);
	for (int i = 0; i < SMALTI_COMMON_OPTIONS; i++)
		put_option(&smalti_common_options[i], NULL, to);
	fputs(".SH EXAMPLES\n", to);
	for (const struct smalti_example *example = command->examples; example->purpose; example++) {
		put_line(".PP\n", example->purpose, to);
		put_line(".PP\n.RS 4\n.nf\n", example->line, to);
		fputs(".fi\n.RE\n", to);
	}
	put_statuses(to);
	fputs(".SH SEE ALSO\n", to);
	put_reference(command->name, strcspn(command->name, " "), "", to);
}
