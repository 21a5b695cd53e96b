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

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool is_called(const struct test_program *program, const char *name)
{
	const char *file = last_part(program->file);
	const size_t length = strlen(file) - strlen(".c");
	return strncmp(file, name, length) == 0 && name[length] == '\0';
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? last_part(argv[0]) : "";
	for (const struct test_program *program = programs; program; program = program->next)
		if (is_called(program, name))
			return program->run();
	fprintf(stderr, "%s is no test; call it by a link with the name of one of these:\n", name);
	for (const struct test_program *program = programs; program; program = program->next)
		fprintf(stderr, "  %s\n", last_part(program->file));
	return 2;
}
