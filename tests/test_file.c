/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[4096];

static const char *at(const char *name)
{
	static char path[8192];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void fresh_root(void)
{
	snprintf(root, sizeof(root), "%s", test_scratch());
}

static int files_in_root(void)
{
	int count = 0;
	DIR *directory = opendir(root);
	for (struct dirent *entry; (entry = readdir(directory));)
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(directory);
	return count;
}

static int write_text(const char *path, const char *text, struct smalti_error *error)
{
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer)
		return -1;
	fputs(text, smalti_writer_stream(writer));
	return smalti_writer_commit(writer, error);
}

static void what_is_written_is_read(void)
{
	static const char *const texts[] = {"", "x", "two\nlines"};
	fresh_root();
	for (int i = 0; i < 3; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_map map;
		size_t length;
		SUCCEEDS(write_text(at("a"), texts[i], &error), &error, "write");
		char *text = smalti_file_read(at("a"), 100, &length, &error);
		SUCCEEDS(smalti_map_open(&map, at("a"), &error), &error, "map");
		CHECK(text && !strcmp(text, texts[i]) && length == strlen(texts[i]), texts[i]);
		CHECK(map.size == (int64_t)length && (!length || !memcmp(map.data, text, length)), texts[i]);
		smalti_map_close(&map);
		free(text);
	}
	CU_ASSERT_EQUAL(files_in_root(), 1);
}

static void only_regular_files_are_read(void)
{
	fresh_root();
	CU_ASSERT_EQUAL(mkfifo(at("pipe"), 0600), 0);
	CU_ASSERT_EQUAL(mkdir(at("folder"), 0700), 0);
	static const struct {
		const char *path, *word;
		enum smalti_code code;
	} cases[] = {{"pipe", "pipe", SMALTI_EFORMAT},
		     {"folder", "folder", SMALTI_EFORMAT},
		     {"absent", "No such", SMALTI_ENOENT},
		     {"folder/../..", "folder", SMALTI_EFORMAT}};
	for (size_t i = 0; i <= COUNT(cases); i++) {
		bool device = i == COUNT(cases);
		const char *path = device ? "/dev/zero" : at(cases[i].path);
		const char *word = device ? "device" : cases[i].word;
		const enum smalti_code code = device ? SMALTI_EFORMAT : cases[i].code;
		struct smalti_map map;
		size_t length;
		struct smalti_error mapping = SMALTI_NO_ERROR, reading = SMALTI_NO_ERROR;
		FAILS(smalti_map_open(&map, path, &mapping), &mapping, code, path, path, word);
		CHECK(!smalti_file_read(path, 10, &length, &reading) && strstr(reading.message, word), path);
	}
}

static void long_files_are_refused(void)
{
	fresh_root();
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length;
	SUCCEEDS(write_text(at("a"), "12345", &error), &error, "write");
	CU_ASSERT_PTR_NULL(smalti_file_read(at("a"), 4, &length, &error));
	CU_ASSERT_EQUAL(error.code, SMALTI_EFORMAT);
}

static void nothing_is_seen_before_the_commit(void)
{
	fresh_root();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_writer *first = smalti_writer_open(at("a"), &error);
	struct smalti_writer *second = smalti_writer_open(at("a"), &error);
	fputs("first", smalti_writer_stream(first));
	fputs("second", smalti_writer_stream(second));
	CU_ASSERT_EQUAL(access(at("a"), F_OK), -1);
	CU_ASSERT_EQUAL(files_in_root(), 2);
	SUCCEEDS(smalti_writer_commit(first, &error), &error, "commit");
	smalti_writer_abort(second);
	CU_ASSERT_EQUAL(files_in_root(), 1);
	size_t length;
	char *text = smalti_file_read(at("a"), 100, &length, &error);
	CU_ASSERT_STRING_EQUAL(text, "first");
	free(text);
}

static void targets_that_cannot_be_are_refused(void)
{
	fresh_root();
	CU_ASSERT_EQUAL(mkdir(at("folder"), 0700), 0);
	CU_ASSERT_EQUAL(mkfifo(at("pipe"), 0600), 0);
	static const struct {
		const char *name;
		enum smalti_code code;
		const char *word;
	} cases[] = {
	    {"folder", SMALTI_EINVAL, "folder"},
	    {"pipe", SMALTI_EINVAL, "pipe"},
	    {"folder/", SMALTI_EINVAL, "name"},
	    {"absent/a", SMALTI_ENOENT, "No such"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_writer_open(at(cases[i].name), &error) ? 0 : -1, &error, cases[i].code,
		      cases[i].name, cases[i].name, cases[i].word);
	}
	struct smalti_error null = SMALTI_NO_ERROR, empty = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(smalti_writer_open("/dev/null", &null));
	CU_ASSERT_PTR_NULL(smalti_writer_open("", &empty));
	CU_ASSERT_EQUAL(empty.code, SMALTI_EINVAL);
	CU_ASSERT_EQUAL(files_in_root(), 2);
}

static void a_long_name_has_room(void)
{
	fresh_root();
	char name[256];
	memset(name, 'n', 255);
	name[255] = '\0';
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(write_text(at(name), "x", &error), &error, "255 bytes");
}

/* Writes `bytes` bytes, one by one or at once, while files may not grow beyond `limit`. */
static int write_limited(const char *path, size_t bytes, bool at_once, rlim_t limit,
			 struct smalti_error *error)
{
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = limit;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	struct smalti_writer *writer = smalti_writer_open(path, error);
	static const char many[100000];
	if (at_once)
		fwrite(many, 1, bytes, smalti_writer_stream(writer));
	for (size_t i = 0; i < bytes && !at_once; i++)
		fputc('x', smalti_writer_stream(writer));
	int status = smalti_writer_commit(writer, error);
	setrlimit(RLIMIT_FSIZE, &old);
	return status;
}

static void a_full_disk_leaves_the_old_file(void)
{
	/* in the buffer at the commit; during the writes; in the very last byte; past the buffer */
	static const size_t sizes[] = {101, 100000, 8193, 100000};
	static const rlim_t limits[] = {100, 100, 8192, 4096};
	for (int i = 0; i < 4; i++) {
		fresh_root();
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(write_text(at("a"), "old", &error), &error, "old file");
		FAILS(write_limited(at("a"), sizes[i], i == 3, limits[i], &error), &error, SMALTI_EIO, "full",
		      "/a", "File too large");
		CU_ASSERT_EQUAL(files_in_root(), 1);
		struct smalti_error reading = SMALTI_NO_ERROR;
		size_t length;
		char *text = smalti_file_read(at("a"), 100, &length, &reading);
		CU_ASSERT_STRING_EQUAL(text, "old");
		free(text);
	}
}

/* A failure that only the later calls meet: the descriptor is gone, the directory is gone. */
static void late_failures_leave_nothing(void)
{
	fresh_root();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_writer *writer = smalti_writer_open(at("a"), &error);
	fputs("x", smalti_writer_stream(writer));
	close(fileno(smalti_writer_stream(writer)));
	FAILS(smalti_writer_commit(writer, &error), &error, SMALTI_EIO, "closed", "/a", "Bad file");
	CU_ASSERT_EQUAL(files_in_root(), 0);

	struct smalti_error placing = SMALTI_NO_ERROR;
	writer = smalti_writer_open(at("b"), &placing);
	mkdir(at("b"), 0700);
	FAILS(smalti_writer_commit(writer, &placing), &placing, SMALTI_EIO, "rename", "/b", "put in place");
	CU_ASSERT_EQUAL(files_in_root(), 1);
}

static void directories_are_made_once(void)
{
	fresh_root();
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_make_directory(at("d"), &error), &error, "new");
	SUCCEEDS(smalti_make_directory(at("d"), &error), &error, "again");
	SUCCEEDS(write_text(at("f"), "", &error), &error, "file");
	FAILS(smalti_make_directory(at("f"), &error), &error, SMALTI_EIO, "file in the way", "/f", "exists");
	struct smalti_error absent = SMALTI_NO_ERROR;
	FAILS(smalti_make_directory(at("no/d"), &absent), &absent, SMALTI_ENOENT, "no parent", "no/d");
}

/* What a process that ends without a commit leaves in the root. */
static void die_writing(const char *name)
{
	const pid_t child = fork();
	if (child == 0)
		_exit(smalti_writer_open(at(name), NULL) ? 0 : 1);
	int status = -1;
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
}

/* The name of the only file in the root that begins so. */
static void find_part(const char *begin, char name[256])
{
	DIR *directory = opendir(root);
	name[0] = '\0';
	for (const struct dirent *entry; (entry = readdir(directory));)
		if (!strncmp(entry->d_name, begin, strlen(begin)))
			snprintf(name, 256, "%s", entry->d_name);
	closedir(directory);
}

/* As it would be called by a process of another machine, last written to some hours ago. */
static void move_elsewhere(const char *begin, int hours)
{
	char name[256], from[8192];
	find_part(begin, name);
	snprintf(from, sizeof(from), "%s", at(name));
	char *tag = name + strlen(begin);
	*tag = *tag == '0' ? '1' : '0';
	CU_ASSERT_EQUAL(rename(from, at(name)), 0);
	const struct timespec then = {.tv_sec = time(NULL) - 3600 * (int64_t)hours};
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, at(name), (struct timespec[]){then, then}, 0), 0);
}

static void leftovers_of_the_dead_alone_are_removed(void)
{
	fresh_root();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_writer *writer = smalti_writer_open(at("mine"), &error);
	die_writing("dead");
	die_writing("elsewhere");
	move_elsewhere(".elsewhere.", 23);
	die_writing("forgotten");
	move_elsewhere(".forgotten.", 25);
	SUCCEEDS(write_text(at(".mine.1-0.part"), "", &error), &error, "a name that is nobody's");
	CU_ASSERT_EQUAL(files_in_root(), 5);
	smalti_writer_clean(root, false);
	static const struct {
		const char *begin;
		bool stays;
	} cases[] = {
	    {".mine.1-0.part", true}, {".dead.", false}, {".elsewhere.", true}, {".forgotten.", false}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char name[256];
		find_part(cases[i].begin, name);
		CHECK((name[0] != '\0') == cases[i].stays, cases[i].begin);
	}
	SUCCEEDS(smalti_writer_commit(writer, &error), &error, "one's own");
	CU_ASSERT_EQUAL(files_in_root(), 3);
}

static const struct test tests[] = {
    {"what is written is read", what_is_written_is_read},
    {"only regular files are read", only_regular_files_are_read},
    {"long files are refused", long_files_are_refused},
    {"nothing is seen before the commit", nothing_is_seen_before_the_commit},
    {"targets that cannot be are refused", targets_that_cannot_be_are_refused},
    {"a long name has room", a_long_name_has_room},
    {"a full disk leaves the old file", a_full_disk_leaves_the_old_file},
    {"late failures leave nothing", late_failures_leave_nothing},
    {"directories are made once", directories_are_made_once},
    {"leftovers of the dead alone are removed", leftovers_of_the_dead_alone_are_removed},
};

TEST_MAIN("file", tests)
