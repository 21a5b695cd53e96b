/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads, processes and machines that fill one directory: who holds a range, and until when. */
#include "base/json.h"
#include "rows.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Threads that claim and give back: no two hold an item at a time. */
enum { CONTENDERS = 4, CONTENDED = 12 };
static atomic_int owners[CONTENDED];
static atomic_int collisions;

static void *contend(void *user)
{
	(void)user;
	struct smalti_store *store = store_open();
	for (int i = 0; i < 25; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_range range;
		char holder[256];
		const struct smalti_range within = {0, CONTENDED};
		if (smalti_store_claim(store, &within, 5, &range, NULL, holder, &error) !=
		    SMALTI_CLAIM_TAKEN) {
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
	root_fresh();
	pthread_t threads[CONTENDERS];
	for (int i = 0; i < CONTENDERS; i++)
		pthread_create(&threads[i], NULL, contend, NULL);
	for (int i = 0; i < CONTENDERS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(collisions, 0);
	store_check_cleanup();
}

static void processes_share_the_work(void)
{
	enum { PROCESSES = 3, ITEMS = 200 };
	root_fresh();
	pid_t children[PROCESSES];
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct smalti_store *store = store_open();
			store_fill(store, ITEMS, 11);
			smalti_store_close(store);
			_exit(CU_get_number_of_failures() != 0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		CU_ASSERT_EQUAL(waitpid(children[i], &status, 0), children[i]);
		CU_ASSERT_EQUAL(status, 0);
	}
	store_check_all(ITEMS, false);
	store_check_cleanup();
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
		struct smalti_store *store = store_open();
		store_claim(store, 10, 10, &range, holder);
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
		root_fresh();
		struct smalti_range range;
		char holder[256] = "";
		struct smalti_store *store = store_open();
		const pid_t child = die_at_work();
		CU_ASSERT_EQUAL(store_claim(store, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
		CHECK(strstr(holder, "process"), holder);
		CU_ASSERT_EQUAL(root_count("", ".part"), 1);
		kill(child, SIGKILL);
		siginfo_t info;
		waitid(P_PID, (id_t)child, &info, WEXITED | (reaped ? 0 : WNOWAIT));
		CU_ASSERT_EQUAL(store_claim(store, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
		CU_ASSERT_EQUAL(root_count("", ".part"), 0);
		CU_ASSERT_FALSE(store_make(store, &range, 10, false));
		smalti_store_close(store);
		store_check_all(10, false);
		store_check_cleanup();
		if (!reaped)
			waitpid(child, NULL, 0);
	}
}

/* Nobody reads a thousand claims while there is something without one. */
static void what_nobody_has_claimed_comes_first(void)
{
	enum { ITEMS = 20, SHARD = 10 };
	root_fresh();
	struct smalti_range range[2];
	char holder[256];
	struct smalti_store *store = store_open();
	const pid_t child = die_at_work();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(store_claim(store, ITEMS, SHARD, &range[i], holder), SMALTI_CLAIM_TAKEN);
		CU_ASSERT_EQUAL(range[i].first, i == 0 ? SHARD : 0);
	}
	for (int i = 0; i < 2; i++)
		CU_ASSERT_FALSE(store_make(store, &range[i], SHARD, false));
	smalti_store_close(store);
	store_check_all(ITEMS, false);
	store_check_cleanup();
}

/* Makes a claim one of another machine, renewed so many seconds ago. */
static void move_away(const char *name, int64_t age)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *object = smalti_json_read(root_at(name), 4096, &error);
	CHECK(object, error.message);
	cJSON_ReplaceItemInObject(object, "machine", cJSON_CreateString("elsewhere"));
	cJSON_ReplaceItemInObject(object, "host", cJSON_CreateString("node7"));
	SUCCEEDS(smalti_json_write(root_at(name), object, &error), &error, "claim");
	cJSON_Delete(object);
	const struct timespec when[2] = {{time(NULL) - age, 0}, {time(NULL) - age, 0}};
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, root_at(name), when, 0), 0);
}

static void claims_run_out(void)
{
	static const char name[] = "claims/000000000000-000000000010";
	root_fresh();
	struct smalti_store *slow = store_open(), *other = store_open();
	struct smalti_range range;
	char holder[256] = "";
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_EQUAL(store_claim(slow, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	struct smalti_shard_writer *writer = smalti_store_begin(slow, &range, &test_rows_schema, &error);
	for (int64_t i = 0; i < 10; i++)
		SUCCEEDS(test_row_append(writer, i, false, &error), &error, "append");
	move_away(name, 290);
	CU_ASSERT_EQUAL(store_claim(other, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
	CHECK(strstr(holder, "node7"), holder);
	move_away(name, 310);
	CU_ASSERT_EQUAL(store_claim(other, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);

	/* Now the slow one comes back, while the other is at work and after it. */
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	bool lost = false;
	SUCCEEDS(smalti_store_commit(slow, &range, writer, &timing, &lost, &error), &error, "lost");
	CU_ASSERT_TRUE(lost);
	CU_ASSERT_EQUAL(store_claim(slow, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
	CU_ASSERT_FALSE(store_make(other, &range, 10, false));
	CU_ASSERT_EQUAL(store_claim(slow, 10, 10, &range, holder), SMALTI_CLAIM_NONE);
	smalti_store_close(slow);
	smalti_store_close(other);
	store_check_all(10, false);
	store_check_cleanup();
}

/* A process that slept has work open on all that it had claimed: none of it may be claimed again before it
 * was dropped, whoever has it by now. */
static void a_sleeper_does_not_claim_what_it_is_at_work_on(void)
{
	enum { ITEMS = 30, SHARD = 10 };
	root_fresh();
	struct smalti_store *sleeper = store_open(), *other = store_open();
	struct smalti_range range[3], taken;
	char holder[256];
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(store_claim(sleeper, ITEMS, SHARD, &range[i], holder), SMALTI_CLAIM_TAKEN);
	move_away("claims/000000000000-000000000010", 310);
	move_away("claims/000000000010-000000000020", 310);
	move_away("claims/000000000020-000000000030", 310);
	CU_ASSERT_EQUAL(store_claim(other, ITEMS, SHARD / 2, &taken, holder), SMALTI_CLAIM_TAKEN);
	CU_ASSERT_EQUAL(taken.end, SHARD / 2);
	struct smalti_range none;
	CU_ASSERT_EQUAL(store_claim(sleeper, ITEMS, SHARD, &none, holder), SMALTI_CLAIM_WAIT);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(store_make(sleeper, &range[i], SHARD, false));
	CU_ASSERT_FALSE(store_make(other, &taken, SHARD / 2, false));
	store_fill(sleeper, ITEMS, SHARD);
	smalti_store_close(sleeper);
	smalti_store_close(other);
	store_check_all(ITEMS, false);
	store_check_cleanup();
}

/* What a loss of power may leave of a claim. */
static void a_claim_that_cannot_be_read_runs_out(void)
{
	root_fresh();
	smalti_store_close(store_open());
	root_put("claims/000000000000-000000000010", "", 0);
	struct smalti_store *store = store_open();
	struct smalti_range range;
	char holder[256] = "";
	CU_ASSERT_EQUAL(store_claim(store, 10, 10, &range, holder), SMALTI_CLAIM_WAIT);
	const struct timespec when[2] = {{time(NULL) - 400, 0}, {time(NULL) - 400, 0}};
	utimensat(AT_FDCWD, root_at("claims/000000000000-000000000010"), when, 0);
	CU_ASSERT_EQUAL(store_claim(store, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	smalti_store_close(store);
	store_check_cleanup();
}

static void the_heartbeat_renews(void)
{
	root_fresh();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_store *store = store_open_as("{}", 1, &error);
	struct smalti_range range;
	char holder[256];
	CU_ASSERT_EQUAL(store_claim(store, 10, 10, &range, holder), SMALTI_CLAIM_TAKEN);
	const char *claim = root_at("claims/000000000000-000000000010");
	const struct timespec old[2] = {{1, 0}, {1, 0}};
	struct stat now = {.st_mtim.tv_sec = 1};
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, claim, old, 0), 0);
	for (int waited = 0; waited < 600 && now.st_mtim.tv_sec == 1; waited++) {
		usleep(100000);
		CU_ASSERT_EQUAL(stat(claim, &now), 0);
	}
	CHECK(now.st_mtim.tv_sec > 1, "renewed");
	smalti_store_close(store);
	store_check_cleanup();
}

static const struct test tests[] = {
    {"no two hold a range", no_two_hold_a_range},
    {"processes share the work", processes_share_the_work},
    {"a dead process's claim is taken over at once", a_dead_process_s_claim_is_taken_over_at_once},
    {"what nobody has claimed comes first", what_nobody_has_claimed_comes_first},
    {"claims run out", claims_run_out},
    {"a sleeper does not claim what it is at work on", a_sleeper_does_not_claim_what_it_is_at_work_on},
    {"a claim that cannot be read runs out", a_claim_that_cannot_be_read_runs_out},
    {"the heartbeat renews", the_heartbeat_renews},
};

TEST_MAIN("store claims", tests)
