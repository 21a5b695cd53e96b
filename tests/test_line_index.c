/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a file's lines: it finds each line that it has, and its memory does not grow. */
#include "harness.h"
#include "text/line_index.h"

#include <fcntl.h>
#include <unistd.h>

static struct smalti_line_index line_index; /* too large for a stack */

static int open_text(const char *text, size_t length)
{
	return open(test_write("lines", text, length), O_RDWR | O_CLOEXEC);
}

static void lines_are_counted(void)
{
	static const struct {
		const char *text;
		size_t length;
		int64_t lines, last; /* where the last one begins */
	} rows[] = {
	    {BYTES(""), 0, 0},           {BYTES("\n"), 1, 0},     {BYTES("a"), 1, 0},
	    {BYTES("a\nb"), 2, 2},       {BYTES("a\nb\n"), 2, 2}, {BYTES("\n\n\n"), 3, 2},
	    {BYTES("a\0\nb\n\0"), 3, 5},
	};
	for (int i = 0; i < COUNT(rows); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		SCOPED(close) const int fd = open_text(rows[i].text, rows[i].length);
		CHECK(smalti_line_index_make(&line_index, fd, "lines", &error) == 0, error.message);
		CU_ASSERT_EQUAL(line_index.lines, rows[i].lines);
		CU_ASSERT_EQUAL(line_index.step, 1);
		if (rows[i].lines)
			CU_ASSERT_EQUAL(line_index.starts[rows[i].lines - 1], rows[i].last);
		CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_CUR), 0);
	}
}

/* Line i has i % 7 bytes, and some that cross the blocks in which the file is read. */
static void every_step_is_found(void)
{
	static const int64_t counts[] = {SMALTI_LINE_STARTS, SMALTI_LINE_STARTS + 1, 2 * SMALTI_LINE_STARTS,
					 2 * SMALTI_LINE_STARTS + 1, 1000003};
	static const int64_t steps[] = {1, 2, 2, 4, 256};
	for (int c = 0; c < COUNT(counts); c++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t *starts = calloc((size_t)counts[c], sizeof(*starts));
		char *text = malloc((size_t)counts[c] * 8);
		size_t length = 0;
		for (int64_t i = 0; i < counts[c]; i++) {
			starts[i] = (int64_t)length;
			memset(text + length, 'x', (size_t)(i % 7));
			length += (size_t)(i % 7);
			text[length++] = '\n';
		}
		SCOPED(close) const int fd = open_text(text, length);
		CHECK(smalti_line_index_make(&line_index, fd, "lines", &error) == 0, error.message);
		CU_ASSERT_EQUAL(line_index.lines, counts[c]);
		CU_ASSERT_EQUAL(line_index.step, steps[c]);
		int64_t wrong = 0;
		for (int64_t i = 0; i < counts[c]; i += line_index.step)
			wrong += line_index.starts[i / line_index.step] != starts[i];
		CU_ASSERT_EQUAL(wrong, 0);
		free(text);
		free(starts);
	}
}

static void changes_are_seen(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(close) const int fd = open_text(BYTES("a\nb\n"));
	CHECK(smalti_line_index_make(&line_index, fd, "lines", &error) == 0, error.message);
	const uint64_t digest = line_index.digest;
	CHECK(smalti_line_index_check(&line_index, fd, "lines", &error) == 0, error.message);
	CU_ASSERT_EQUAL(write(fd, "c\nd\ne\n", 6), 6);
	CU_ASSERT_EQUAL(smalti_line_index_check(&line_index, fd, "lines", &error), -1);
	CHECK(strstr(error.message, "lines: changed while it was read"), error.message);
	error = (struct smalti_error)SMALTI_NO_ERROR;
	CHECK(smalti_line_index_make(&line_index, fd, "lines", &error) == 0, error.message);
	CU_ASSERT_NOT_EQUAL(line_index.digest, digest);
	SCOPED(close) const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CU_ASSERT_EQUAL(smalti_line_index_make(&line_index, none, "null", &error), -1);
	CHECK(error.code == SMALTI_EINVAL, error.message);
}

static const struct test tests[] = {
    {"lines are counted", lines_are_counted},
    {"every step is found", every_step_is_found},
    {"changes are seen", changes_are_seen},
};

TEST_MAIN("index of lines", tests)
