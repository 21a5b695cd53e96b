/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What fuzz_SUBJECT.c has: FUZZER(data, size) { ...; return 0; }. All are in one program, run_fuzz. */
struct fuzzer {
	const char *file;
	int (*run)(const uint8_t *data, size_t size);
	struct fuzzer *next;
};
void fuzz_add(struct fuzzer *fuzzer);

#define FUZZER(data, size)                                                                                   \
	static int fuzz_one(const uint8_t *data, size_t size);                                               \
	__attribute__((constructor)) static void add_fuzzer(void)                                            \
	{                                                                                                    \
		static struct fuzzer fuzzer = {__FILE__, fuzz_one, NULL};                                    \
		fuzz_add(&fuzzer);                                                                           \
	}                                                                                                    \
	static int fuzz_one(const uint8_t *data, size_t size)
