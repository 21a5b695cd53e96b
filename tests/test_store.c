/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of features as several processes fill it: what is claimed, committed, left behind, found again. */
#include "base/file.h"
#include "base/json.h"
#include "harness.h"
#include "rows.h"
#include "store/journal.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[4096]; /* the folder, which is not there at first */

static void fresh(void)
{
	snprintf(root, sizeof(root), "%.4000s/out", test_scratch());
}

static const char *at(const char *name)
{
	static char paths[4][8192];
	static int used;
	char *path = paths[used++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static bool is_there(const char *name)
{
	return access(at(name), F_OK) == 0;
}

static void put(const char *name, const char *text, size_t length)
{
	FILE *stream = fopen(at(name), "wb");
	if (!stream || fwrite(text, 1, length, stream) != length || fclose(stream))
		abort();
}

static char *get(const char *name, size_t *length)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char *text = smalti_file_read(at(name), 1 << 24, length, &error);
	CHECK(text, error.message);
	return text ? text : strdup("");
}

/* Entries of a folder in `root` whose names hold the word. */
static int count_files(const char *folder, const char *word)
{
	int count = 0;
	DIR *entries = opendir(at(folder));
	for (const struct dirent *entry; entries && (entry = readdir(entries));)
		count +=
		    strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strstr(entry->d_name, word);
	if (entries)
		closedir(entries);
	return count;
}

static struct smalti_store *open_as(const char *identity, int64_t lease, struct smalti_error *error)
{
	cJSON *object = cJSON_Parse(identity);
	const struct smalti_store_options options = {object, lease};
	struct smalti_store *store = smalti_store_open(root, &options, error);
	cJSON_Delete(object);
	return store;
}

static struct smalti_store *open_store(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_store *store = open_as("{\"model\":\"a\"}", 0, &error);
	CHECK(store, error.message);
	if (!store)
		abort();
	return store;
}

static enum smalti_claim_status claim(struct smalti_store *store, int64_t end, int64_t items,
				      struct smalti_range *range, char holder[256])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_range within = {0, end};
	const enum smalti_claim_status status =
	    smalti_store_claim(store, &within, items, range, holder, &error);
	CHECK(error.code == SMALTI_OK, error.message);
	return status;
}

/* Writes and commits `rows` rows of a claimed range; whether it was lost. */
static bool make(struct smalti_store *store, const struct smalti_range *range, int64_t rows, bool whole)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	bool lost = false;
	struct smalti_shard_writer *writer = smalti_store_begin(store, range, &test_rows_schema, &error);
	CHECK(writer, error.message);
	if (!writer)
		return false;
	for (int64_t i = 0; i < rows; i++)
		SUCCEEDS(test_row_append(writer, range->first + i, whole, &error), &error, "append");
	SUCCEEDS(smalti_store_commit(store, range, writer, &timing, &lost, &error), &error, "commit");
	return lost;
}

/* All that is left of 0 … end − 1, waiting for others where need be. */
static void fill(struct smalti_store *store, int64_t end, int64_t items)
{
	struct smalti_range range;
	char holder[256];
	for (enum smalti_claim_status status;
	     (status = claim(store, end, items, &range, holder)) != SMALTI_CLAIM_NONE;) {
		if (status == SMALTI_CLAIM_FAILED)
			break;
		if (status == SMALTI_CLAIM_TAKEN)
			CHECK(!make(store, &range, range.end - range.first, false), "kept");
		else
			usleep(2000);
	}
}

/* The items of 0 … end − 1 are committed once, with the right rows. */
static void check_all(int64_t end, bool whole)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_journal journal = {0};
	SUCCEEDS(smalti_journal_read(&journal, root, NULL, &error), &error, "journal");
	int64_t next = 0, wrong = 0;
	for (int64_t i = 0; i < journal.count; i++) {
		const struct smalti_shard_id *id = &journal.entries[i].id;
		CU_ASSERT_EQUAL(id->first, next);
		char *path = smalti_journal_path(root, id, &error);
		struct smalti_shard *shard = smalti_shard_open(path, &error);
		CHECK(shard, error.message);
		for (next = id->first; next < id->end && shard; next++) {
			struct smalti_features_row row;
			struct test_row wanted;
			test_row_make(&wanted, next, whole);
			SUCCEEDS(smalti_shard_row(shard, next, &row, &error), &error, "row");
			wrong += test_row_digest(&test_rows_schema, &row) !=
				 test_row_digest(&test_rows_schema, &wanted.row);
		}
		smalti_shard_close(shard);
		free(path);
	}
	CU_ASSERT_EQUAL(next, end);
	CU_ASSERT_EQUAL(wrong, 0);
	smalti_journal_free(&journal);
}

/* What a folder holds besides what it should, when no process is at work on it. */
static void check_tidy(void)
{
	CU_ASSERT_EQUAL(count_files("claims", ""), 0);
	CU_ASSERT_EQUAL(count_files("", ".part"), 0);
}

static void parts_are_the_whole(void)
{
	static const int64_t parts[] = {1, 2, 3, 7, 64, 2000};
	for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
		const struct smalti_range whole = {17, 17 + 1003};
		int64_t next = whole.first, least = 1003, most = 0;
		for (int64_t i = 0; i < parts[p]; i++) {
			const struct smalti_range part = smalti_range_part(&whole, i, parts[p]);
			const int64_t length = part.end - part.first;
			CU_ASSERT_EQUAL(part.first, next);
			CU_ASSERT_EQUAL(part.first, 17 + i * 1003 / parts[p]);
			next = part.end;
			least = length < least ? length : least;
			most = length > most ? length : most;
		}
		CU_ASSERT_EQUAL(next, whole.end);
		CU_ASSERT(most - least <= 1);
	}
	const struct smalti_range large = {0, INT64_MAX};
	const struct smalti_range last = smalti_range_part(&large, INT64_MAX - 1, INT64_MAX);
	CU_ASSERT(last.first == INT64_MAX - 1 && last.end == INT64_MAX);
}

/* Each part by a store of its own, as an array of processes would; parts without items as well. */
static void uneven_parts_make_every_item_once(void)
{
	static const int64_t parts[] = {1, 3, 7, 64};
	for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
		fresh();
		for (int64_t i = 0; i < parts[p]; i++) {
			struct smalti_store *store = open_store();
			const struct smalti_range whole = {0, 53};
			const struct smalti_range part = smalti_range_part(&whole, i, parts[p]);
			struct smalti_error error = SMALTI_NO_ERROR;
			struct smalti_range range;
			char holder[256];
			while (smalti_store_claim(store, &part, 10, &range, holder, &error) ==
			       SMALTI_CLAIM_TAKEN) {
				CU_ASSERT_EQUAL(range.first / 10, (range.end - 1) / 10);
				make(store, &range, range.end - range.first, false);
			}
			struct smalti_store_totals totals;
			smalti_store_totals(store, &part, &totals);
			CU_ASSERT_EQUAL(totals.items, part.end - part.first);
			smalti_store_close(store);
		}
		check_all(53, false);
		check_tidy();
	}
}

static void differences_are_named(void)
{
	static const char first[] =
	    "{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"size\":256,"
	    "\"captions\":[\"prompt\"]}";
	static const struct {
		const char *identity, *words[3];
	} cases[] = {
	    {"{\"captions\":[\"prompt\"],\"size\":256,\"dtype\":\"f16\",\"model\":{\"weights\":\"12\","
	     "\"name\":"
	     "\"a\"}}",
	     {NULL}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"13\"},\"dtype\":\"f16\",\"size\":256,\"captions\":["
	     "\"prompt\"]}",
	     {"model.weights", "\"12\"", "\"13\""}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"size\":512,\"captions\":["
	     "\"prompt\"]}",
	     {"size = 256", "512", "another folder"}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"captions\":[\"prompt\"]}",
	     {"size", "256", "nothing"}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\",\"more\":true},\"dtype\":\"f16\",\"size\":256,"
	     "\"captions\":[\"prompt\"]}",
	     {"model.more", "nothing", "true"}},
	    {"{\"model\":{\"name\":\"a\",\"weights\":\"12\"},\"dtype\":\"f16\",\"size\":256,\"captions\":["
	     "\"prompt\",\"b\"]}",
	     {"captions", "[\"prompt\"]", "[\"prompt\",\"b\"]"}},
	    {"{\"model\":\"a\",\"dtype\":\"f16\",\"size\":256,\"captions\":[\"prompt\"]}",
	     {"model", "\"12\"", "\"a\""}},
	};
	fresh();
	struct smalti_error making = SMALTI_NO_ERROR;
	smalti_store_close(open_as(first, 0, &making));
	CHECK(making.code == SMALTI_OK, making.message);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_store *store = open_as(cases[i].identity, 0, &error);
		if (!cases[i].words[0])
			CHECK(store, error.message);
		else
			FAILS(store ? 0 : -1, &error, SMALTI_EINVAL, cases[i].identity, cases[i].words[0],
			      cases[i].words[1], cases[i].words[2]);
		smalti_store_close(store);
	}
}

static void foreign_folders_are_refused(void)
{
	fresh();
	CU_ASSERT_EQUAL(mkdir(root, 0777), 0);
	put("thesis.tex", "x", 1);
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(open_as("{}", 0, &error) ? 0 : -1, &error, SMALTI_EINVAL, "foreign", "thesis.tex",
	      "extract.json");
	CU_ASSERT_FALSE(is_there(".lock"));
	unlink(at("thesis.tex"));
	smalti_store_close(open_store());

	struct smalti_error damaged = SMALTI_NO_ERROR;
	size_t length;
	char *text = get("extract.json", &length);
	text[20] ^= 1;
	put("extract.json", text, length);
	free(text);
	FAILS(open_as("{}", 0, &damaged) ? 0 : -1, &damaged, SMALTI_ECORRUPT, "damaged", "extract.json",
	      "checksum");
	unlink(at("extract.json"));
	put("shard-000000000000-000000000010.h5", "x", 1);
	struct smalti_error absent = SMALTI_NO_ERROR;
	FAILS(open_as("{}", 0, &absent) ? 0 : -1, &absent, SMALTI_EINVAL, "absent", "shard-", "extract.json");
	CU_ASSERT(is_there("shard-000000000000-000000000010.h5"));

	put("file", "", 0);
	struct smalti_error file = SMALTI_NO_ERROR;
	const size_t folder = strlen(root);
	snprintf(root + folder, sizeof(root) - folder, "/file");
	FAILS(open_as("{}", 0, &file) ? 0 : -1, &file, SMALTI_EIO, "file", "/file");
	CU_ASSERT_PTR_NULL(open_as("{}", -1, &file));
}

static void what_was_done_is_not_done_again(void)
{
	fresh();
	for (int64_t end = 0; end <= 40; end += 20) {
		struct smalti_store *store = open_store();
		fill(store, end, 7);
		struct smalti_store_totals totals;
		smalti_store_totals(store, &(struct smalti_range){0, 1000}, &totals);
		CU_ASSERT_EQUAL(totals.items, end);
		smalti_store_close(store);
		check_all(end, false);
		check_tidy();
	}
	/* [0,7) [7,14) [14,20) [20,21) [21,28) [28,35) [35,40) */
	CU_ASSERT_EQUAL(count_files("", ".h5"), 7);
}

static void ranges_that_cannot_be_are_refused(void)
{
	static const struct {
		struct smalti_range within;
		int64_t items;
	} cases[] = {{{-1, 5}, 1}, {{5, 4}, 1}, {{0, 5}, 0}, {{0, INT64_MAX}, 10}};
	fresh();
	struct smalti_store *store = open_store();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_range range;
		char holder[256];
		FAILS(smalti_store_claim(store, &cases[i].within, cases[i].items, &range, holder, &error),
		      &error, SMALTI_EINVAL, "claim", "items");
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_store_begin(store, &(struct smalti_range){0, 5}, &test_rows_schema, &error) ? 0 : -1,
	      &error, SMALTI_EINVAL, "not claimed", "0 to 5", "not claimed");
	smalti_store_close(store);
}

/* Threads that claim and give back: no two hold an item at a time. */
enum { CONTENDERS = 4, CONTENDED = 12 };
static atomic_int owners[CONTENDED];
static atomic_int collisions;

static void *contend(void *user)
{
	(void)user;
	struct smalti_store *store = open_store();
	for (int i = 0; i < 25; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_range range;
		char holder[256];
		const struct smalti_range within = {0, CONTENDED};
		if (smalti_store_claim(store, &within, 5, &range, holder, &error) != SMALTI_CLAIM_TAKEN) {
			atomic_fetch_add(&collisions, error.code != SMALTI_OK);
			continue;
		}
		for (int64_t item = range.first; item < range.end; item++)
			atomic_fetch_add(&collisions, atomic_fetch_add(&owners[item], 1) != 0);
		usleep(1000);
		for (int64_t item = range.first; item < range.end; item++)
			atomic_fetch_sub(&owners[item], 1);
		smalti_store_abandon(store, &range, NULL);
	}
	smalti_store_close(store);
	return NULL;
}

static void no_two_hold_a_range(void)
{
	fresh();
	pthread_t threads[CONTENDERS];
	for (int i = 0; i < CONTENDERS; i++)
		pthread_create(&threads[i], NULL, contend, NULL);
	for (int i = 0; i < CONTENDERS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(collisions, 0);
	check_tidy();
}

static void processes_share_the_work(void)
{
	enum { PROCESSES = 3, ITEMS = 200 };
	fresh();
	pid_t children[PROCESSES];
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct smalti_store *store = open_store();
			fill(store, ITEMS, 11);
			smalti_store_close(store);
			_exit(CU_get_number_of_failures() != 0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		CU_ASSERT_EQUAL(waitpid(children[i], &status, 0), children[i]);
		CU_ASSERT_EQUAL(status, 0);
	}
	check_all(ITEMS, false);
	check_tidy();
}

/* Starts a child that claims [0, 10), begins a file and is killed in it. */
static pid_t die_at_work(void)
{
	int ready[2];
	if (pipe(ready))
		abort();
	const pid_t child = fork();
	if (child == 0) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_range range;
		char holder[256];
		struct smalti_store *store = open_store();
		claim(store, 10, 10, &range, holder);
		struct smalti_shard_writer *writer =
		    smalti_store_begin(store, &range, &test_rows_schema, &error);
		for (int64_t i = 0; i < 5; i++)
			(void)test_row_append(writer, i, false, &error);
		(void)!write(ready[1], "x", 1);
		pause();
	}
	char byte;
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void a_dead_process_s_claim_is_taken_over_at_once(void)
{
	for (int reaped = 0; reaped < 2; reaped++) {
		fresh();
		struct smalti_range range;
		char holder[256] = "";
		struct smalti_store *store = open_store();
		const pid_t child = die_at_work();
		CU_ASSERT_EQUAL(claim(store, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
		CHECK(strstr(holder, "process"), holder);
		CU_ASSERT_EQUAL(count_files("", ".part"), 1);
		kill(child, SIGKILL);
		siginfo_t info;
		waitid(P_PID, (id_t)child, &info, WEXITED | (reaped ? 0 : WNOWAIT));
		CU_ASSERT_EQUAL(claim(store, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
		CU_ASSERT_EQUAL(count_files("", ".part"), 0);
		CU_ASSERT_FALSE(make(store, &range, 10, false));
		smalti_store_close(store);
		check_all(10, false);
		check_tidy();
		if (!reaped)
			waitpid(child, NULL, 0);
	}
}

/* Makes a claim one of another machine, renewed so many seconds ago. */
static void move_away(const char *name, int64_t age)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *object = smalti_json_read(at(name), 4096, &error);
	CHECK(object, error.message);
	cJSON_ReplaceItemInObject(object, "machine", cJSON_CreateString("elsewhere"));
	cJSON_ReplaceItemInObject(object, "host", cJSON_CreateString("node7"));
	SUCCEEDS(smalti_json_write(at(name), object, &error), &error, "claim");
	cJSON_Delete(object);
	const struct timespec when[2] = {{time(NULL) - age, 0}, {time(NULL) - age, 0}};
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, at(name), when, 0), 0);
}

static void claims_run_out(void)
{
	static const char name[] = "claims/000000000000-000000000010";
	fresh();
	struct smalti_store *slow = open_store(), *other = open_store();
	struct smalti_range range;
	char holder[256] = "";
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_EQUAL(claim(slow, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	struct smalti_shard_writer *writer = smalti_store_begin(slow, &range, &test_rows_schema, &error);
	for (int64_t i = 0; i < 10; i++)
		SUCCEEDS(test_row_append(writer, i, false, &error), &error, "append");
	move_away(name, 290);
	CU_ASSERT_EQUAL(claim(other, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
	CHECK(strstr(holder, "node7"), holder);
	move_away(name, 310);
	CU_ASSERT_EQUAL(claim(other, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);

	/* Now the slow one comes back, while the other is at work and after it. */
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	bool lost = false;
	SUCCEEDS(smalti_store_commit(slow, &range, writer, &timing, &lost, &error), &error, "lost");
	CU_ASSERT_TRUE(lost);
	CU_ASSERT_EQUAL(claim(slow, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
	CU_ASSERT_FALSE(make(other, &range, 10, false));
	CU_ASSERT_EQUAL(claim(slow, 10, 10, &range, holder), SMALTI_CLAIM_NONE);
	smalti_store_close(slow);
	smalti_store_close(other);
	check_all(10, false);
	check_tidy();
}

/* What a loss of power may leave of a claim. */
static void a_claim_that_cannot_be_read_runs_out(void)
{
	fresh();
	smalti_store_close(open_store());
	put("claims/000000000000-000000000010", "", 0);
	struct smalti_store *store = open_store();
	struct smalti_range range;
	char holder[256] = "";
	CU_ASSERT_EQUAL(claim(store, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
	const struct timespec when[2] = {{time(NULL) - 400, 0}, {time(NULL) - 400, 0}};
	utimensat(AT_FDCWD, at("claims/000000000000-000000000010"), when, 0);
	CU_ASSERT_EQUAL(claim(store, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	smalti_store_close(store);
	check_tidy();
}

static void the_heartbeat_renews(void)
{
	fresh();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_store *store = open_as("{}", 1, &error);
	struct smalti_range range;
	char holder[256];
	CU_ASSERT_EQUAL(claim(store, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	struct stat before, after;
	CU_ASSERT_EQUAL(stat(at("claims/000000000000-000000000010"), &before), 0);
	usleep(700000);
	CU_ASSERT_EQUAL(stat(at("claims/000000000000-000000000010"), &after), 0);
	const double seconds = (double)(after.st_mtim.tv_sec - before.st_mtim.tv_sec) +
			       (double)(after.st_mtim.tv_nsec - before.st_mtim.tv_nsec) * 1e-9;
	CHECK(seconds > 0.1, "renewed");
	smalti_store_close(store);
	check_tidy();
}

static void part_of_a_range_can_be_committed(void)
{
	fresh();
	struct smalti_store *store = open_store();
	struct smalti_range range;
	char holder[256];
	claim(store, 20, 10, &range, holder);
	CU_ASSERT_FALSE(make(store, &range, 4, false));
	claim(store, 20, 10, &range, holder);
	CU_ASSERT(range.first == 4 && range.end == 10);
	CU_ASSERT_FALSE(make(store, &range, 0, false));
	CU_ASSERT_EQUAL(claim(store, 20, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	CU_ASSERT_EQUAL(range.first, 4);
	smalti_store_abandon(store, &range, NULL);
	fill(store, 20, 10);
	smalti_store_close(store);
	check_all(20, false);
	check_tidy();
}

static int64_t lines_of(const char *name)
{
	size_t length;
	char *text = get(name, &length);
	int64_t count = 0;
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		count++;
	free(text);
	return count;
}

/* The items that lack something, and the reasons. */
static void count_failures(int64_t end, int64_t *failures, int64_t *reasons)
{
	*failures = *reasons = 0;
	for (int64_t i = 0; i < end; i++) {
		struct test_row row;
		struct smalti_shard_failure list[2];
		test_row_make(&row, i, false);
		const int count = test_row_failures(&row, list);
		*failures += count > 0;
		*reasons += count;
	}
}

static void failures_are_listed_and_made_anew(void)
{
	enum { ITEMS = 500, SHARD = 30 };
	int64_t failures, reasons, done = 0;
	count_failures(ITEMS, &failures, &reasons);
	CU_ASSERT(reasons > failures && failures > 20);
	fresh();
	struct smalti_store *store = open_store();
	const struct smalti_range all = {0, ITEMS};
	struct smalti_range range;
	struct smalti_store_totals totals;
	struct smalti_error error = SMALTI_NO_ERROR;
	char holder[256], *path;
	fill(store, ITEMS, SHARD);
	CU_ASSERT_EQUAL(smalti_store_claim_failed(store, &all, &range, &path, holder, &error),
			SMALTI_CLAIM_NONE); /* they have just failed */
	smalti_store_totals(store, &all, &totals);
	CU_ASSERT(totals.items == ITEMS && totals.failures == failures);
	CU_ASSERT_EQUAL(lines_of("failed.jsonl"), reasons);
	smalti_store_close(store);

	store = open_store();
	CU_ASSERT_EQUAL(smalti_store_claim_failed(store, &all, &range, &path, holder, &error),
			SMALTI_CLAIM_TAKEN);
	CHECK(is_there(strrchr(path, '/') + 1), path);
	free(path);
	CU_ASSERT_TRUE(make(store, &range, 3, true)); /* less than there was */
	while (smalti_store_claim_failed(store, &all, &range, &path, holder, &error) == SMALTI_CLAIM_TAKEN) {
		CU_ASSERT_FALSE(make(store, &range, range.end - range.first, true));
		CU_ASSERT_EQUAL(access(path, F_OK), -1);
		free(path);
		done++;
	}
	CHECK(error.code == SMALTI_OK, error.message);
	CU_ASSERT_EQUAL(count_files("", "-r1.h5"), done);
	smalti_store_totals(store, &all, &totals);
	CU_ASSERT(totals.items == ITEMS && totals.failures > 0 && totals.failures < SHARD);
	CU_ASSERT(lines_of("failed.jsonl") > 0 && lines_of("failed.jsonl") < SHARD);
	smalti_store_close(store);

	store = open_store(); /* the one that was given up */
	CU_ASSERT_EQUAL(smalti_store_claim_failed(store, &all, &range, &path, holder, &error),
			SMALTI_CLAIM_TAKEN);
	free(path);
	CU_ASSERT_FALSE(make(store, &range, range.end - range.first, true));
	CU_ASSERT_EQUAL(lines_of("failed.jsonl"), 0);
	smalti_store_close(store);
	check_all(ITEMS, true);
	check_tidy();
}

static void the_list_of_failures_is_made_again(void)
{
	fresh();
	struct smalti_store *store = open_store();
	fill(store, 100, 20);
	smalti_store_close(store);
	size_t length, again;
	char *text = get("failed.jsonl", &length);
	for (size_t cut = 0; cut < length; cut += 7) {
		put("failed.jsonl", text, cut);
		smalti_store_close(open_store());
		char *made = get("failed.jsonl", &again);
		CU_ASSERT(again == length && !memcmp(made, text, length));
		free(made);
	}
	unlink(at("failed.jsonl"));
	smalti_store_close(open_store());
	CU_ASSERT(is_there("failed.jsonl"));
	free(text);
}

static void what_is_nobody_s_is_removed(void)
{
	static const struct {
		const char *name;
		bool stays;
	} cases[] = {
	    {"shard-000000000100-000000000110.h5", false},
	    {"shard-000000000000-000000000010-r1.h5", false},
	    {".shard-000000000100-000000000110.h5.0123456789abcdef.part", false},
	    {".manifest.json.123-4.part", false},
	    {".failed.jsonl.123-4.part", false},
	    {"claims/.000000000100-000000000110.123-0.part", false},
	    {"shard-000000000000-000000000010.h5", true},
	    {"shard-000000000100-000000000110.h5.broken", true},
	    {"shard-100-110.h5", true},
	    {".report.html.123-4.part", true},
	    {"notes.txt", true},
	};
	fresh();
	struct smalti_store *store = open_store();
	fill(store, 10, 10);
	struct smalti_range range;
	char holder[256];
	struct smalti_error error = SMALTI_NO_ERROR;
	claim(store, 20, 10, &range, holder);
	struct smalti_shard_writer *writer = smalti_store_begin(store, &range, &test_rows_schema, &error);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!is_there(cases[i].name))
			put(cases[i].name, "x", 1);
	smalti_store_close(open_store());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK(is_there(cases[i].name) == cases[i].stays, cases[i].name);
	CU_ASSERT_EQUAL(count_files("", ".h5."), 2); /* what is being written, what is broken */
	smalti_store_abandon(store, &range, writer);
	smalti_store_close(store);
	CU_ASSERT_EQUAL(count_files("claims", ""), 0);
}

static void three_commits(void)
{
	fresh();
	struct smalti_store *store = open_store();
	fill(store, 30, 10);
	smalti_store_close(store);
}

/* The last line up to any byte is as if it had never been, but for the whole of it. */
static void a_torn_line_was_never_there(void)
{
	three_commits();
	size_t length;
	char *text = get("journal", &length);
	size_t last = length - 1;
	while (text[last - 1] != '\n')
		last--;
	for (size_t cut = last; cut < length; cut += 13) {
		for (int zeros = 0; zeros < 2; zeros++) {
			char *torn = calloc(1, length);
			memcpy(torn, text, cut);
			torn[length - 1] = '\n';
			put("journal", torn, zeros ? length : cut);
			free(torn);
			struct smalti_store *store = open_store();
			struct smalti_store_totals totals;
			smalti_store_totals(store, &(struct smalti_range){0, 30}, &totals);
			CU_ASSERT_EQUAL(totals.items, 20);
			fill(store, 30, 10);
			smalti_store_close(store);
			check_all(30, false);
			CU_ASSERT_EQUAL(lines_of("journal"), 3);
		}
	}
	free(text);
}

static void a_damaged_line_is_named(void)
{
	three_commits();
	size_t length;
	char *text = get("journal", &length);
	const size_t first = strcspn(text, "\n") + 1;
	for (size_t i = 0; i < first; i++) {
		text[i] ^= 4;
		put("journal", text, length);
		text[i] ^= 4;
		struct smalti_journal journal = {0};
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_journal_read(&journal, root, NULL, &error), &error, SMALTI_ECORRUPT, "damaged",
		      "journal: line 1:", "verify --repair");
	}
	text[first + 3] ^= 1;
	put("journal", text, length);
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(open_as("{\"model\":\"a\"}", 0, &error) ? 0 : -1, &error, SMALTI_ECORRUPT, "open", "line 2");
	CU_ASSERT_EQUAL(count_files("", ".h5"), 3);
	unlink(at("journal"));
	struct smalti_error absent = SMALTI_NO_ERROR;
	FAILS(open_as("{\"model\":\"a\"}", 0, &absent) ? 0 : -1, &absent, SMALTI_EIO, "open", "journal");
	CU_ASSERT_EQUAL(count_files("", ".h5"), 3);
	free(text);
}

static void overlaps_are_refused(void)
{
	three_commits();
	struct smalti_journal journal = {0};
	struct smalti_error error = SMALTI_NO_ERROR, overlap = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_journal_read(&journal, root, NULL, &error), &error, "read");
	struct smalti_journal_entry entry = journal.entries[1];
	entry.id = (struct smalti_shard_id){15, 18, 0};
	SUCCEEDS(smalti_journal_append(&journal, root, &entry, NULL, &error), &error, "append");
	smalti_journal_free(&journal);
	FAILS(smalti_journal_read(&journal, root, NULL, &overlap), &overlap, SMALTI_ECORRUPT, "overlap",
	      "line 4", "shard-000000000010-000000000020.h5", "overlap");
}

/* A line that takes a shard back leaves its items to be made again. */
static void what_is_dropped_is_made_again(void)
{
	three_commits();
	struct smalti_journal journal = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_journal_read(&journal, root, NULL, &error), &error, "read");
	struct smalti_journal_entry entry = journal.entries[1];
	entry.drop = true;
	SUCCEEDS(smalti_journal_append(&journal, root, &entry, "a test", &error), &error, "drop");
	CU_ASSERT_EQUAL(journal.count, 2);
	smalti_journal_free(&journal);
	struct smalti_store *store = open_store();
	CU_ASSERT_FALSE(is_there("shard-000000000010-000000000020.h5"));
	struct smalti_range range;
	char holder[256];
	CU_ASSERT_EQUAL(claim(store, 30, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	CU_ASSERT(range.first == 10 && range.end == 20);
	make(store, &range, 10, false);
	smalti_store_close(store);
	check_all(30, false);
}

static void a_whole_folder_is_completed(void)
{
	fresh();
	struct smalti_store *store = open_store();
	struct smalti_error error = SMALTI_NO_ERROR;
	fill(store, 20, 10);
	SUCCEEDS(smalti_store_complete(store, 30, &error), &error, "too early");
	CU_ASSERT_FALSE(is_there("manifest.json"));
	fill(store, 30, 10);
	SUCCEEDS(smalti_store_complete(store, 30, &error), &error, "complete");
	CU_ASSERT(is_there("manifest.json") && is_there("failed.jsonl"));
	struct stat before, after;
	stat(at("manifest.json"), &before);
	smalti_store_close(store);

	store = open_store();
	SUCCEEDS(smalti_store_complete(store, 30, &error), &error, "again");
	stat(at("manifest.json"), &after);
	CU_ASSERT_EQUAL(before.st_ino, after.st_ino);
	fill(store, 31, 10);
	CU_ASSERT_FALSE(is_there("manifest.json")); /* it is of less than there is */
	smalti_store_close(store);
	check_tidy();
}

static const struct test tests[] = {
    {"parts are the whole", parts_are_the_whole},
    {"uneven parts make every item once", uneven_parts_make_every_item_once},
    {"differences are named", differences_are_named},
    {"foreign folders are refused", foreign_folders_are_refused},
    {"what was done is not done again", what_was_done_is_not_done_again},
    {"ranges that cannot be are refused", ranges_that_cannot_be_are_refused},
    {"no two hold a range", no_two_hold_a_range},
    {"processes share the work", processes_share_the_work},
    {"a dead process's claim is taken over at once", a_dead_process_s_claim_is_taken_over_at_once},
    {"claims run out", claims_run_out},
    {"a claim that cannot be read runs out", a_claim_that_cannot_be_read_runs_out},
    {"the heartbeat renews", the_heartbeat_renews},
    {"part of a range can be committed", part_of_a_range_can_be_committed},
    {"failures are listed and made anew", failures_are_listed_and_made_anew},
    {"the list of failures is made again", the_list_of_failures_is_made_again},
    {"what is nobody's is removed", what_is_nobody_s_is_removed},
    {"a torn line was never there", a_torn_line_was_never_there},
    {"a damaged line is named", a_damaged_line_is_named},
    {"overlaps are refused", overlaps_are_refused},
    {"what is dropped is made again", what_is_dropped_is_made_again},
    {"a whole folder is completed", a_whole_folder_is_completed},
};

TEST_MAIN("store", tests)
