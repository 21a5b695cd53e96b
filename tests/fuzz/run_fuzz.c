/* SPDX-License-Identifier: Apache-2.0 */
/* The program of all fuzzers: it runs the one by whose name it is called. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fuzzer *fuzzers, *chosen;

void fuzz_add(struct fuzzer *fuzzer)
{
	fuzzer->next = fuzzers;
	fuzzers = fuzzer;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *name = basename((*argv)[0]);
	const size_t length = strlen(name);
	(void)argc;
	for (chosen = fuzzers; chosen; chosen = chosen->next) {
		const char *file = basename(chosen->file);
		if (strncmp(file, name, length) == 0 && strcmp(file + length, ".c") == 0)
			return 0;
	}
	fprintf(stderr, "%s is no fuzzer; call it by a link with the name of one of these:\n", name);
	for (const struct fuzzer *fuzzer = fuzzers; fuzzer; fuzzer = fuzzer->next)
		fprintf(stderr, "  %s\n", basename(fuzzer->file));
	exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return chosen->run(data, size);
}
