/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>

struct test {
	const char *name;
	void (*run)(void);
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* Runs the table under CUnit; prints its summary; returns the exit status of the program. */
int test_main(const char *subject, const struct test *tests, int count);

/* A test of tests/test_SUBJECT.c, as one of those linked into a program (tests/runner.c). */
struct test_program {
	const char *file;
	int (*run)(void);
	struct test_program *next;
};
void test_add_program(struct test_program *program);
/* Begins the function that returns the status of this file's test. */
#define TEST_PROGRAM()                                                                                       \
	static int test_program(void);                                                                       \
	__attribute__((constructor)) static void add_program(void)                                           \
	{                                                                                                    \
		static struct test_program program = {__FILE__, test_program, NULL};                         \
		test_add_program(&program);                                                                  \
	}                                                                                                    \
	static int test_program(void)
#define TEST_MAIN(subject, tests)                                                                            \
	TEST_PROGRAM()                                                                                       \
	{                                                                                                    \
		return test_main(subject, tests, COUNT(tests));                                              \
	}

/* Skips a test that cannot run here: prints why in a line "SKIP: …", which scripts/check counts. A program
 * whose tests were all skipped ends with 77. */
void test_skip(const char *reason);

/* Return a path under tests/data (or models), in a static buffer that is valid until the fourth next call. */
const char *test_data(const char *name);
const char *test_model(const char *name);
/* Returns a fresh empty directory, removed with its contents at exit. */
const char *test_scratch(void);
/* Return the path of a file in such a directory, in a static buffer that is valid until the next call;
 * test_write() makes the file. */
const char *test_file(const char *name);
const char *test_write(const char *name, const void *bytes, size_t length);

/* Two initializers: a literal that may hold NULs, and its length. */
#define BYTES(literal) (literal), sizeof(literal) - 1

/* Asserts, with a message that names the place; `what` names the case of a table. */
void test_check(bool ok, const char *what, const char *file, int line);
#define CHECK(ok, what) test_check((ok), (what), __FILE__, __LINE__)
/* Asserts status 0 and no error, else fails with the error's message. */
void test_succeeds(int status, const struct smalti_error *error, const char *what, const char *file,
		   int line);
#define SUCCEEDS(status, error, what) test_succeeds((status), (error), (what), __FILE__, __LINE__)
/* Asserts status -1, that code, and a message with each of up to 3 words (NULL: none). */
void test_fails(int status, const struct smalti_error *error, enum smalti_code code, const char *words[3],
		const char *what, const char *file, int line);
#define FAILS(status, error, code, what, ...)                                                                \
	test_fails((status), (error), (code), (const char *[3]){__VA_ARGS__}, (what), __FILE__, __LINE__)

/* Returns the largest |a - b| over count floats; NaN anywhere gives infinity. */
double test_max_error(const float *a, const float *b, int64_t count);
double test_max_abs(const float *a, int64_t count);

/* Fills with sin(a·i + b), the input fill of docs/reference.md 9. */
void test_fill(float *to, int64_t count, double a, double b);
/* Returns the next value in [-1, 1) of a repeatable stream. */
float test_random(uint64_t *state);
