/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of a directory of features run, break and kill: a process that fills one with rows that
 * their index decides.
 *
 *   store_worker fill DIR ITEMS SHARD [MICROSECONDS [LEASE]]
 *       all that is left, with random pauses up to so long
 *   store_worker dump DIR
 *       a line per row, in the order of the items: index, key, XXH3 of all of it
 *   store_worker faults DIR ITEMS SHARD KIND...
 *       a run for each Nth call of a kind that fails, then another that has to bring it to the end (with
 *       tests/fault.c) */
#include "base/base.h"
#include "base/parse.h"
#include "fault.h"
#include "rows.h"
#include "store/shards.h"
#include "store/store.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct job {
	const char *directory;
	int64_t items, shard, pause, lease;
};

enum { AHEAD = 3 }; /* ranges that are claimed at a time, as an extraction does */

static struct smalti_store *open_store(const struct job *job, struct smalti_error *error)
{
	cJSON *identity = cJSON_Parse("{\"rows\":{\"by\":\"index\"}}");
	const struct smalti_store_options options = {.identity = identity, .lease_seconds = job->lease};
	struct smalti_store *store = smalti_store_open(job->directory, &options, error);
	cJSON_Delete(identity);
	return store;
}

static void rest(int64_t max)
{
	if (max > 0)
		usleep((useconds_t)(rand() % max));
}

static int make(struct smalti_store *store, const struct job *job, const struct smalti_range *range,
		struct smalti_error *error)
{
	const struct smalti_shard_timing timing = {.began = 1, .ended = 2};
	bool lost;
	struct smalti_shard_writer *writer = smalti_store_begin(store, range, &test_rows_schema, error);
	int status = writer ? 0 : -1;
	for (int64_t i = range->first; i < range->end && status == 0; i++) {
		rest(job->pause);
		status = test_row_append(writer, i, false, error);
	}
	if (status == 0)
		return smalti_store_commit(store, range, writer, &timing, &lost, error);
	smalti_store_abandon(store, range, writer);
	return -1;
}

/* The oldest of the claimed ranges is made when there is no more to claim, for now. */
static int fill(struct smalti_store *store, const struct job *job, struct smalti_error *error)
{
	const struct smalti_range all = {0, job->items};
	struct smalti_range claimed[AHEAD];
	char holder[256];
	for (int count = 0;;) {
		enum smalti_claim_status status = SMALTI_CLAIM_TAKEN;
		while (count < AHEAD && status == SMALTI_CLAIM_TAKEN) {
			status =
			    smalti_store_claim(store, &all, job->shard, &claimed[count], NULL, holder, error);
			count += status == SMALTI_CLAIM_TAKEN;
		}
		if (status == SMALTI_CLAIM_FAILED)
			return -1;
		if (count) {
			if (make(store, job, &claimed[0], error))
				return -1;
			memmove(claimed, claimed + 1, (size_t)--count * sizeof(*claimed));
		} else if (status == SMALTI_CLAIM_NONE) {
			return smalti_store_complete(store, job->items, error);
		} else {
			usleep(5000);
		}
	}
}

static int run(const struct job *job)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_store *store = open_store(job, &error);
	const int status = store ? fill(store, job, &error) : -1;
	smalti_store_close(store);
	if (status)
		fprintf(stderr, "store_worker: %s\n", error.message);
	return status ? 1 : 0;
}

/* Tells each row, in order. */
static int walk(const char *directory,
		void (*tell)(void *user, const struct smalti_features_row *row, uint64_t digest), void *user,
		struct smalti_error *error)
{
	struct smalti_shards shards = {0};
	int status =
	    smalti_shards_read(&shards, directory, error) || smalti_shards_check(&shards, directory, error)
		? -1
		: 0;
	for (int64_t s = 0; s < shards.count && status == 0; s++) {
		const struct smalti_shard_id *id = &shards.entries[s].id;
		char *path = smalti_shard_path(directory, id, error);
		struct smalti_shard *shard = path ? smalti_shard_open(path, error) : NULL;
		status = shard ? 0 : -1;
		for (int64_t i = id->first; i < id->end && status == 0; i++) {
			struct smalti_features_row row;
			status = smalti_shard_row(shard, i, &row, error);
			if (status == 0)
				tell(user, &row, test_row_digest(smalti_shard_info(shard)->schema, &row));
		}
		smalti_shard_close(shard);
		free(path);
	}
	smalti_shards_free(&shards);
	return status;
}

static void print_row(void *user, const struct smalti_features_row *row, uint64_t digest)
{
	(void)user;
	printf("%" PRId64 " %s %016" PRIx64 "\n", row->index, row->key, digest);
}

static int dump(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int status = walk(directory, print_row, NULL, &error);
	if (status)
		fprintf(stderr, "store_worker: %s\n", error.message);
	return status ? 1 : 0;
}

/* Rows that came in their order and were right. */
static void count_row(void *user, const struct smalti_features_row *row, uint64_t digest)
{
	int64_t *count = user;
	struct test_row wanted;
	test_row_make(&wanted, *count, false);
	*count += row->index == *count && digest == test_row_digest(&test_rows_schema, &wanted.row);
}

/* The first file of a directory that should not be there, when nobody is at work. */
static bool has_leftovers(const char *directory, const char *inside, const char *word)
{
	bool found = false;
	char *path = smalti_format(NULL, "%s/%s", directory, inside);
	DIR *entries = opendir(path);
	for (const struct dirent *entry; entries && !found && (entry = readdir(entries));) {
		found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			strstr(entry->d_name, word);
		if (found)
			fprintf(stderr, "store_worker: %s/%s is left\n", path, entry->d_name);
	}
	if (entries)
		closedir(entries);
	free(path);
	return found;
}

/* The run's exit status and whether the fault was met; -1 - signal if it was killed. */
static int run_apart(const struct job *job, const char *fault, bool *met)
{
	int told[2];
	if (pipe(told))
		return 2;
	const pid_t child = fork();
	if (child == 0) {
		int (*arm)(const char *text);
		long (*seen)(void);
		*(void **)&arm = dlsym(RTLD_DEFAULT, "test_fault_arm");
		*(void **)&seen = dlsym(RTLD_DEFAULT, "test_fault_seen");
		if (!arm || !seen || (fault && arm(fault)))
			_exit(2);
		const int status = run(job);
		const long number = fault ? strtol(strchr(fault, ':') + 1, NULL, 10) : 0;
		const char reached = seen() >= number ? 'y' : 'n';
		(void)!write(told[1], &reached, 1);
		_exit(status);
	}
	close(told[1]);
	char reached = 'y';
	(void)!read(told[0], &reached, 1);
	close(told[0]);
	*met = reached == 'y';
	int status = 0;
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? -1 - WTERMSIG(status) : WEXITSTATUS(status);
}

static int say(const char *fault, const char *what)
{
	fprintf(stderr, "store_worker: after %s: %s\n", fault, what);
	return -1;
}

/* 1: the fault was met, and nothing was lost by it; 0: there are fewer such calls. */
static int survive(const struct job *job, const char *fault)
{
	bool met, ignored;
	const int broken = run_apart(job, fault, &met);
	if (broken != 0 && broken != 1 && broken != -1 - SIGKILL)
		return say(fault, "neither success nor an error");
	if (broken < 0 && strncmp(fault, "kill:", 5) != 0)
		return say(fault, "killed");
	if (run_apart(job, NULL, &ignored) != 0)
		return say(fault, "the next run failed");
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t rows = 0;
	if (walk(job->directory, count_row, &rows, &error))
		return say(fault, error.message);
	if (rows != job->items)
		return say(fault, "rows are missing or wrong");
	if (has_leftovers(job->directory, "", ".part") || has_leftovers(job->directory, "claims", ""))
		return say(fault, "something is left");
	return met;
}

static int faults(struct job job, char *const *kinds)
{
	int64_t runs = 0;
	char *directory = NULL;
	for (; *kinds; kinds++) {
		int status = 1;
		for (int64_t n = 1; status == 1; n++, runs++) {
			const char *plus = strchr(*kinds, '+');
			char fault[64];
			snprintf(fault, sizeof(fault), "%.*s:%" PRId64 "%s", (int)strcspn(*kinds, "+"),
				 *kinds, n, plus ? "+" : "");
			free(directory);
			directory = smalti_format(NULL, "%s/%s-%" PRId64, job.directory, *kinds, n);
			struct job one = job;
			one.directory = directory;
			status = survive(&one, fault);
		}
		if (status < 0)
			return 1;
	}
	free(directory);
	printf("%" PRId64 " runs\n", runs);
	return 0;
}

static int64_t number(const char *text)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t value = 0;
	if (smalti_parse_int64(text, 0, INT64_C(1) << 40, &value, &error)) {
		fprintf(stderr, "store_worker: %s\n", error.message);
		exit(2);
	}
	return value;
}

int main(int count, char **arguments)
{
	signal(SIGXFSZ, SIG_IGN);
	srand((unsigned)getpid());
	if (count >= 3 && !strcmp(arguments[1], "dump"))
		return dump(arguments[2]);
	if (count < 5)
		return 2;
	struct job job = {arguments[2], number(arguments[3]), number(arguments[4]), 0, 0};
	if (!strcmp(arguments[1], "faults"))
		return faults(job, arguments + 5);
	if (strcmp(arguments[1], "fill") != 0)
		return 2;
	if (count > 5)
		job.pause = number(arguments[5]);
	if (count > 6)
		job.lease = number(arguments[6]);
	return run(&job);
}
