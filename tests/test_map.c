/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"
#include "sanitized.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES_OF_FILE = 3 * 65536 + 100 };

/* A file of ones that was last changed long ago. */
static const char *make_file(const char *name)
{
	static char bytes[BYTES_OF_FILE];
	memset(bytes, 1, sizeof(bytes));
	const char *path = test_write(name, bytes, sizeof(bytes));
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, (struct timespec[2]){{1, 0}, {1, 0}}, 0), 0);
	return path;
}

static void cut(const char *path)
{
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
}

static void cut_in_last_page(const char *path)
{
	CU_ASSERT_EQUAL(truncate(path, BYTES_OF_FILE - 50), 0);
}

static void cut_and_lengthen(const char *path)
{
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
	CU_ASSERT_EQUAL(truncate(path, BYTES_OF_FILE), 0);
}

static void write_in_place(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	CU_ASSERT_EQUAL(pwrite(fd, "x", 1, 5), 1);
	close(fd);
}

static void replace(const char *path)
{
	char other[4096];
	snprintf(other, sizeof(other), "%s.new", path);
	FILE *file = fopen(other, "we");
	fputs("another", file);
	fclose(file);
	CU_ASSERT_EQUAL(rename(other, path), 0);
}

static void take_away(const char *path)
{
	CU_ASSERT_EQUAL(unlink(path), 0);
}

static void leave_alone(const char *path)
{
	(void)path;
}

static int64_t sum(const struct smalti_map *map)
{
	int64_t total = 0;
	for (int64_t i = 0; i < map->size; i++)
		total += ((const char *)map->data)[i];
	return total;
}

static void what_changes_is_noticed(void)
{
	static const struct {
		const char *name;
		void (*change)(const char *path);
		const char *words; /* NULL: what was opened is there still */
	} cases[] = {
	    {"cut", cut, "expected 196708 bytes, found 0"},
	    {"cut in its last page", cut_in_last_page, "expected 196708 bytes, found 196658"},
	    {"cut and as long again", cut_and_lengthen, "was written to"},
	    {"written to", write_in_place, "was written to"},
	    {"replaced", replace, NULL},
	    {"taken away", take_away, NULL},
	    {"left alone", leave_alone, NULL},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_map map, same;
		const char *path = make_file("mapped");
		SUCCEEDS(smalti_map_open(&map, path, &error), &error, cases[i].name);
		SUCCEEDS(smalti_map_open(&same, path, &error), &error, cases[i].name);
		SUCCEEDS(smalti_map_check(&map, &error), &error, cases[i].name);
		cases[i].change(path);
		const int64_t total = sum(&map);
		smalti_fail(&error, SMALTI_ECORRUPT, "a consequence");
		const int status = smalti_map_check(&map, &error);
		CHECK(smalti_map_is_lost(&map) == (cases[i].words != NULL), cases[i].name);
		CHECK(!smalti_map_is_lost(&same), "the other map was not read");
		if (cases[i].words)
			FAILS(status, &error, SMALTI_EIO, cases[i].name, "/mapped: changed while it was read",
			      cases[i].words);
		else
			CHECK(status == 0 && total == BYTES_OF_FILE, cases[i].name);
		smalti_map_close(&map);
		smalti_map_close(&same);
		unlink(path);
	}
}

static void what_is_lost_stays_lost(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_map map;
	const char *path = make_file("mapped");
	SUCCEEDS(smalti_map_open(&map, path, &error), &error, "map");
	cut(path);
	CU_ASSERT_EQUAL(sum(&map), 0);
	make_file("mapped");
	FAILS(smalti_map_check(&map, &error), &error, SMALTI_EIO, "made again", "lost its bytes");
	smalti_map_drop(map.data, map.size);
	CU_ASSERT_EQUAL(sum(&map), 0);
	smalti_map_close(&map);
}

static void end_with_7(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	_exit(7);
}

static void end_with_8(int number)
{
	(void)number;
	_exit(8);
}

/* A page of a file that is not the library's, and is gone. */
static void touch_own_map(void)
{
	const char *path = make_file("own");
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const volatile char *data = mmap(NULL, BYTES_OF_FILE, PROT_READ, MAP_SHARED, fd, 0);
	cut(path);
	_exit(data[0]);
}

static void be_told(void)
{
	raise(SIGBUS);
	_exit(0);
}

/* The status of a process that does this behind the library's first map, with the handler that it had. */
static int status_of(const struct sigaction *handler, void (*act)(void))
{
	int status = -1;
	const char *path = make_file("first");
	const pid_t child = fork();
	if (child == 0) {
		struct smalti_map map;
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		if (handler)
			sigaction(SIGBUS, handler, NULL);
		if (smalti_map_open(&map, path, NULL) == 0)
			act();
		_exit(1);
	}
	waitpid(child, &status, 0);
	return status;
}

static void others_keep_their_handler(void)
{
	const struct sigaction seven = {.sa_sigaction = end_with_7, .sa_flags = SA_SIGINFO};
	const struct sigaction eight = {.sa_handler = end_with_8};
	if (SANITIZED) {
		test_skip("AddressSanitizer has a handler of its own");
		return;
	}
	void (*const acts[])(void) = {touch_own_map, be_told};
	for (int i = 0; i < COUNT(acts); i++) {
		CU_ASSERT_EQUAL(WEXITSTATUS(status_of(&seven, acts[i])), 7);
		CU_ASSERT_EQUAL(WEXITSTATUS(status_of(&eight, acts[i])), 8);
		const int status = status_of(NULL, acts[i]);
		CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) > 1, "nobody else: it ends");
	}
}

static const struct test tests[] = {
    {"others keep their handler", others_keep_their_handler}, /* before this process has a map */
    {"what changes is noticed", what_changes_is_noticed},
    {"what is lost stays lost", what_is_lost_stays_lost},
};

TEST_MAIN("map", tests)
