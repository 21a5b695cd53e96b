/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "harness.h"
#include "store/run_log.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 100 };

struct lines {
	int count;
	cJSON *items[LINES];
};

static void free_lines(struct lines *lines)
{
	for (int i = 0; i < lines->count; i++)
		cJSON_Delete(lines->items[i]);
}

/* The only file in DIRECTORY/runs, every line of it JSON. */
static void read_lines(const char *directory, struct lines *lines, const char *what)
{
	char path[1024];
	struct smalti_error error = SMALTI_NO_ERROR;
	snprintf(path, sizeof(path), "%s/runs", directory);
	DIR *runs = opendir(path);
	int files = 0;
	for (const struct dirent *entry = NULL; runs && (entry = readdir(runs));)
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/runs/%s", directory, entry->d_name);
			files++;
		}
	if (runs)
		closedir(runs);
	CHECK(files == 1, what);
	size_t length = 0;
	char *text = smalti_file_read(path, 1 << 20, &length, &error);
	SUCCEEDS(text ? 0 : -1, &error, what);
	lines->count = 0;
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) && rest && lines->count < LINES;) {
		cJSON *item = smalti_json_parse(line, strlen(line), &error);
		SUCCEEDS(item ? 0 : -1, &error, line);
		lines->items[lines->count++] = item;
	}
	CHECK(rest == NULL, what); /* the last line is complete */
	free(text);
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

static const char *text(const cJSON *object, const char *key)
{
	const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return value ? value : "(none)";
}

static const struct smalti_run_sample sample = {.items = 3,
						.captions = 5,
						.tokens = 123456789012,
						.images = 7,
						.pixels = 11,
						.failures = 13,
						.rows = 17,
						.bytes = 19,
						.waiting = 23,
						.computing = 29,
						.finished = 31,
						.text = 0.5,
						.decode = 1.25,
						.vae = 1e6,
						.write = 0.0004,
						.busy = (const double[]){1.5, 2.5}};

static void every_line_can_be_read(void)
{
	static const char *const workers[] = {"CPU 0", "odd \"name\"\n"};
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *options = cJSON_CreateObject();
	cJSON_AddStringToObject(options, "input", "caf\xe9/\xc3\xa9"); /* the first is no UTF-8 */
	const struct smalti_run_head head = {
	    .policy = "lws", .workers = workers, .worker_count = 2, .options = options};
	const char *directory = test_scratch();
	struct smalti_run_log *log = smalti_run_log_open(directory, &head, &error);
	SUCCEEDS(log ? 0 : -1, &error, "open");
	cJSON_Delete(options);
	smalti_run_log_add(log, &sample);
	CHECK(!smalti_run_log_due(log), "the next one is due later");
	smalti_run_log_add(log, &sample);
	smalti_run_log_caption(log, 0);
	smalti_run_log_caption(log, 7);
	smalti_run_log_caption(log, 7);
	smalti_run_log_caption(log, 5000);
	smalti_run_log_image(log, 256, 512);
	smalti_run_log_image(log, 512, 256);
	smalti_run_log_image(log, 256, 512);
	cJSON *devices = cJSON_CreateArray();
	cJSON_AddItemToArray(devices, cJSON_CreateString("GPU"));
	smalti_run_log_devices(log, devices);
	SUCCEEDS(smalti_run_log_close(log, &sample, "finished", &error), &error, "close");

	struct lines lines;
	read_lines(directory, &lines, "lines");
	CHECK(lines.count == 6, "head, sample, devices, sample, histograms, end");
	if (lines.count == 6) {
		const cJSON *first = lines.items[0], *second = lines.items[3];
		CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(lines.items[2], "devices")) == 1, "devices");
		CHECK(number(first, "run") == 1 && number(first, "pid") == (double)getpid(), "head");
		CHECK(number(first, "began") > 1.7e9 && strcmp(text(first, "policy"), "lws") == 0, "head");
		CHECK(strcmp(text(cJSON_GetObjectItem(first, "options"), "input"), "caf?/\xc3\xa9") == 0,
		      "options");
		const cJSON *names = cJSON_GetObjectItem(first, "workers");
		CHECK(cJSON_GetArraySize(names) == 2 &&
			  strcmp(cJSON_GetStringValue(cJSON_GetArrayItem(names, 1)), workers[1]) == 0,
		      "workers");
		CHECK(number(second, "t") >= 0 && number(second, "resident") > 1e5, "sample");
		CHECK(number(second, "items") == 3 && number(second, "tokens") == 123456789012.0 &&
			  number(second, "finished") == 31 && number(second, "decode") == 1.25 &&
			  number(second, "vae") == 1e6 && number(second, "write") == 0,
		      "sample");
		CHECK(cJSON_GetArrayItem(cJSON_GetObjectItem(second, "busy"), 1)->valuedouble == 2.5, "busy");
		char *histograms = cJSON_PrintUnformatted(lines.items[4]);
		CHECK(strstr(histograms,
			     "\"lengths\":[[0,1],[7,2],[1024,1]],\"bins\":[[256,512,2],[512,256,1]]}"),
		      histograms);
		free(histograms);
		CHECK(strcmp(text(lines.items[5], "end"), "finished") == 0, "end");
	}
	free_lines(&lines);
}

/* A process that is killed leaves the histograms of some moments before. */
static void histograms_are_written_now_and_then(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_run_head head = {.interval = 1e-9};
	const char *directory = test_scratch();
	struct smalti_run_log *log = smalti_run_log_open(directory, &head, &error);
	SUCCEEDS(log ? 0 : -1, &error, "open");
	smalti_run_log_caption(log, 7);
	for (int made = 0; made < 40;) {
		made += smalti_run_log_due(log);
		smalti_run_log_add(log, &(struct smalti_run_sample){.items = made});
	}
	struct lines lines;
	read_lines(directory, &lines, "before the end");
	CHECK(lines.count == 42, "head, 32 samples, histograms, 8 samples");
	CHECK(lines.count == 42 && cJSON_GetObjectItem(lines.items[33], "lengths"), "histograms");
	CHECK(lines.count == 42 && number(lines.items[41], "items") == 40, "last sample");
	free_lines(&lines);
	SUCCEEDS(smalti_run_log_close(log, NULL, "stopped", &error), &error, "close");
}

static void more_bins_than_any_table_has_are_counted_together(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *directory = test_scratch();
	struct smalti_run_log *log = smalti_run_log_open(directory, &(struct smalti_run_head){0}, &error);
	for (int64_t i = 1; i <= 70; i++)
		smalti_run_log_image(log, i, i);
	SUCCEEDS(smalti_run_log_close(log, NULL, "finished", &error), &error, "close");
	struct lines lines;
	read_lines(directory, &lines, "bins");
	const cJSON *bins = lines.count == 3 ? cJSON_GetObjectItem(lines.items[1], "bins") : NULL;
	char *last = cJSON_PrintUnformatted(cJSON_GetArrayItem(bins, 64));
	CHECK(cJSON_GetArraySize(bins) == 65 && last && strcmp(last, "[0,0,6]") == 0, last ? last : "none");
	free(last);
	free_lines(&lines);
}

static void a_directory_that_cannot_be_written_to_is_told_once(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_run_log *log =
	    smalti_run_log_open("/nonexistent/folder", &(struct smalti_run_head){0}, &error);
	CU_ASSERT_PTR_NULL(log);
	FAILS(-1, &error, SMALTI_ENOENT, "open", "/nonexistent/folder/runs");
	smalti_run_log_add(log, &sample);
	smalti_run_log_caption(log, 1);
	smalti_run_log_image(log, 1, 1);
	struct smalti_error none = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_run_log_close(log, &sample, "finished", &none), &none, "no log");
}

/* The disk is full from some sample on: nothing stops, the close says so. */
static void a_full_disk_is_told_at_the_end(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct rlimit before, limit;
	const char *directory = test_scratch();
	struct smalti_run_log *log =
	    smalti_run_log_open(directory, &(struct smalti_run_head){.interval = 1e-9}, &error);
	SUCCEEDS(log ? 0 : -1, &error, "open");
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 1000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 1000; i++)
		smalti_run_log_add(log, &sample);
	CHECK(!smalti_run_log_due(log), "nothing is due any more");
	const int status = smalti_run_log_close(log, &sample, "finished", &error);
	setrlimit(RLIMIT_FSIZE, &before);
	FAILS(status, &error, SMALTI_EIO, "full", "/runs/", "cannot be written", "File too large");
}

static const struct test tests[] = {
    {"every line can be read", every_line_can_be_read},
    {"histograms are written now and then", histograms_are_written_now_and_then},
    {"more bins than any table has are counted together", more_bins_than_any_table_has_are_counted_together},
    {"a directory that cannot be written to is told once",
     a_directory_that_cannot_be_written_to_is_told_once},
    {"a full disk is told at the end", a_full_disk_is_told_at_the_end},
};

TEST_MAIN("run log", tests)
