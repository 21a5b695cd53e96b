/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 }; /* as automake has it */

/* Whether the test is asked for: by the beginning of its name, or all are. */
static bool is_wanted(const struct test *test)
{
	const char *wanted = getenv("SMALTI_TEST");
	return !wanted || strncmp(test->name, wanted, strlen(wanted)) == 0;
}

static unsigned skipped;

void test_skip(const char *reason)
{
	printf("\nSKIP: %s\n", reason);
	skipped++;
}

int test_main(const char *subject, const struct test *tests, int count)
{
	unsigned added = 0;
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite(subject, NULL, NULL);
	for (int i = 0; suite && i < count; i++) {
		if (!is_wanted(&tests[i]))
			continue;
		if (!CU_add_test(suite, tests[i].name, tests[i].run))
			return 1;
		added++;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	unsigned ran = CU_get_number_of_tests_run();
	CU_cleanup_registry();
	if (failures || ran != added || !added)
		return 1;
	return skipped == added ? SKIPPED : 0;
}

static const char *below(const char *variable, const char *fallback, const char *name)
{
	static char paths[4][4096];
	static int next;
	const char *root = getenv(variable);
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", root ? root : fallback, name);
	return path;
}

const char *test_data(const char *name)
{
	return below("SMALTI_TESTDATA", "tests/data", name);
}

const char *test_model(const char *name)
{
	return below("SMALTI_MODELS", "models", name);
}

static char scratch[256];

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info, (void)type, (void)walk;
	return remove(path);
}

static void remove_scratch(void)
{
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_scratch(void)
{
	if (scratch[0]) {
		remove_scratch();
		scratch[0] = '\0';
	} else {
		atexit(remove_scratch);
	}
	const char *root = getenv("TMPDIR");
	snprintf(scratch, sizeof(scratch), "%s/smalti-test-XXXXXX", root ? root : "/tmp");
	if (!mkdtemp(scratch)) {
		perror(scratch);
		exit(1);
	}
	return scratch;
}

const char *test_file(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", test_scratch(), name);
	return path;
}

const char *test_write(const char *name, const void *bytes, size_t length)
{
	const char *path = test_file(name);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
		perror(path);
		exit(1);
	}
	return path;
}

void test_check(bool ok, const char *what, const char *file, int line)
{
	if (!ok)
		printf("\n    %s:%d: %s", file, line, what);
	CU_assertImplementation(ok, (unsigned)line, what, file, "", CU_FALSE);
}

void test_succeeds(int status, const struct smalti_error *error, const char *what, const char *file, int line)
{
	char text[SMALTI_ERROR_LENGTH + 256];
	snprintf(text, sizeof(text), "%s: %s", what, error->message);
	test_check(status == 0 && error->code == SMALTI_OK, text, file, line);
}

void test_fails(int status, const struct smalti_error *error, enum smalti_code code, const char *words[3],
		const char *what, const char *file, int line)
{
	char text[SMALTI_ERROR_LENGTH + 256];
	snprintf(text, sizeof(text), "%s: status %d, code %d, message '%s'", what, status, (int)error->code,
		 error->message);
	bool ok = status == -1 && error->code == code && error->message[0];
	for (int i = 0; i < 3 && words[i]; i++)
		ok = ok && strstr(error->message, words[i]);
	test_check(ok, text, file, line);
}

double test_max_error(const float *a, const float *b, int64_t count)
{
	double largest = 0;
	for (int64_t i = 0; i < count; i++) {
		double error = fabs((double)a[i] - (double)b[i]);
		if (isnan(error))
			return INFINITY;
		largest = fmax(largest, error);
	}
	return largest;
}

double test_max_abs(const float *a, int64_t count)
{
	double largest = 0;
	for (int64_t i = 0; i < count; i++)
		largest = fmax(largest, fabs((double)a[i]));
	return largest;
}

void test_fill(float *to, int64_t count, double a, double b)
{
	for (int64_t i = 0; i < count; i++)
		to[i] = (float)sin(a * (double)i + b);
}

float test_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (float)(int32_t)(*state >> 32) * 0x1p-31f;
}
