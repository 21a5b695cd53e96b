/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a room's tests: it runs the one by whose name it is called. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

static struct test_program *programs;

void test_add_program(struct test_program *program)
{
	program->next = programs;
	programs = program;
}

static bool is_called(const struct test_program *program, const char *name)
{
	const char *file = basename(program->file);
	const size_t length = strlen(file) - strlen(".c");
	return strncmp(file, name, length) == 0 && name[length] == '\0';
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? basename(argv[0]) : "";
	for (const struct test_program *program = programs; program; program = program->next)
		if (is_called(program, name))
			return program->run();
	fprintf(stderr, "%s is no test; call it by a link with the name of one of these:\n", name);
	for (const struct test_program *program = programs; program; program = program->next)
		fprintf(stderr, "  %s\n", basename(program->file));
	return 2;
}
