/* SPDX-License-Identifier: Apache-2.0
 *
 * StarPU's performance models: tasks of different cost have entries of their own.
 */
#include "bench/cases.h"
#include "harness.h"
#include "rt/session.h"
#include "rt/task.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>

/* Whatever changes the arithmetic or the bytes of a task changes its key, any word of its arguments. */
static int change_words(void *user, const struct smalti_bench_case *c)
{
	(void)user;
	const struct smalti_op *op = &smalti_ops[c->op];
	int64_t aligned[SMALTI_MAX_ARGUMENTS / 8];
	unsigned char *arguments = (unsigned char *)aligned;
	memcpy(arguments, c->arguments, op->arguments_size);
	const uint32_t key = smalti_task_key(op, arguments, 1);
	const double flops = op->flops(arguments), bytes = op->bytes(arguments);
	CHECK(smalti_task_key(op, arguments, 3) != key, c->name);
	for (size_t word = 0; word < op->arguments_size; word += 4) {
		if (word % 8 == 4 && arguments[word] == 0)
			continue; /* it may be the upper half of an extent: products would overflow */
		arguments[word] ^= 1;
		if (op->flops(arguments) != flops || op->bytes(arguments) != bytes)
			CHECK(smalti_task_key(op, arguments, 1) != key, c->name);
		arguments[word] ^= 1;
	}
	return 0;
}

static void keys(void)
{
	CHECK(smalti_bench_each(SMALTI_F32, change_words, NULL) == 0, "all in f32");
	CHECK(smalti_bench_each(SMALTI_BF16, change_words, NULL) == 0, "all in bf16");
	CHECK(smalti_bench_each(SMALTI_F16, change_words, NULL) == 0, "all in f16");
}

/* The file of an op's model in `directory`, or NULL. */
static FILE *open_model(const char *directory, const char *op)
{
	char pattern[512];
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/codelets/*/smalti_%s_*", directory, op);
	FILE *file = glob(pattern, 0, NULL, &found) ? NULL : fopen(found.gl_pathv[0], "r");
	globfree(&found);
	return file;
}

/* Tiles of equally many rows, which is all that StarPU would look at. */
static void stored(void)
{
	enum { RUNS = 10 };
	static const int64_t dims[] = {3, 8, 11};
	static const float values[8 * 11] = {0};
	const char *directory = test_file("models");
	setenv("STARPU_PERF_MODEL_DIR", directory, 1);
	const struct smalti_session_options options = {.cpus = 1, .policy = "dmda"};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	struct smalti_task_group *task_group = smalti_task_group_new(session, "shapes", 0, &error);
	for (int i = 0; i < RUNS * COUNT(dims); i++) {
		const int64_t dim = dims[i % COUNT(dims)], row_bytes = dim * (int64_t)sizeof(float);
		struct smalti_tile *row = smalti_tile_upload(task_group, 1, row_bytes, values);
		struct smalti_tile *y = smalti_tile_upload(task_group, 8, row_bytes, values);
		smalti_insert(add_row, task_group, (.row = row, .y = y), .rows = 8, .dim = dim);
		smalti_tile_release(row);
		smalti_tile_release(y);
	}
	smalti_task_group_free(task_group);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	unsetenv("STARPU_PERF_MODEL_DIR");

	FILE *file = open_model(directory, "add_row");
	int entries = 0;
	char line[512];
	while (file && fgets(line, sizeof(line), file)) {
		double flops;
		if (sscanf(line, "%*x %*d %lf %*f %*f %*f %*f %*d", &flops) != 1)
			continue;
		entries++;
		CHECK(flops == 24 || flops == 64 || flops == 88, line);
	}
	CHECK(entries == COUNT(dims), "an entry for each shape");
	if (file)
		fclose(file);
}

#ifdef STARPU_TRANSFER_CALLBACKS /* a StarPU of scripts/starpu: others look elsewhere, too */
/* StarPU reads models where the session says. Where it was installed there may be nothing. */
static void directories(void)
{
	char *text = NULL, *rest = NULL, expected[PATH_MAX];
	size_t length = 0;
	const char *directory = test_file("models");
	snprintf(expected, sizeof(expected), "directory: <%s/", directory);
	setenv("STARPU_PERF_MODEL_DIR", directory, 1);
	const struct smalti_session_options options = {.cpus = 1};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	FILE *to = open_memstream(&text, &length);
	starpu_perfmodel_directory(to);
	fclose(to);
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	unsetenv("STARPU_PERF_MODEL_DIR");
	CHECK(length > 0, "one directory at least");
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		CHECK(strncmp(line, expected, strlen(expected)) == 0, line);
	free(text);
}
#endif

static const struct test tests[] = {
    {"keys", keys},
    {"stored", stored},
#ifdef STARPU_TRANSFER_CALLBACKS
    {"directories", directories},
#endif
};

TEST_MAIN("performance models", tests)
