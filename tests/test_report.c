/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "report/page.h"
#include "report/report.h"
#include "store/run_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void text_is_escaped(void)
{
	static const struct {
		const char *text, *json;
	} cases[] = {
	    {"plain \xc3\xa9", "\"plain \xc3\xa9\""},
	    {"</script><!-- \"x\" \\ 'y'>&amp;",
	     "\"\\u003c/script\\u003e\\u003c!-- \\u0022x\\u0022 \\u005c 'y'\\u003e\\u0026amp;\""},
	    {"a\nb\tc\x7f", "\"a\\u000ab\\u0009c\\u007f\""},
	    {"\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	    {"\xc0\xbcscript>", "\"\xef\xbf\xbd\xef\xbf\xbdscript\\u003e\""}, /* an overlong '<' */
	    {"", "\"\""},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *json = NULL;
		size_t length = 0;
		FILE *page = open_memstream(&json, &length);
		smalti_page_text(page, cases[i].text);
		fclose(page);
		CHECK(strcmp(json, cases[i].json) == 0, json);
		free(json);
	}
}

static void reasons_are_generalized(void)
{
	static const struct {
		const char *reason, *key, *general;
	} cases[] = {
	    {"/data/a/b.png: cannot be opened: No such file", "a/b.png", "cannot be opened: No such file"},
	    {"/a.png/a.png: ends at row 12 of 200", "a.png", "ends at row # of #"},
	    {"the caption has 1048577 bytes", "a.png", "the caption has # bytes"},
	    {"a.png", "a.png", "a.png"},
	    {"reason", "", "reason"},
	    {"", "a", ""},
	    {"1a2", "1", "a#"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char reason[128];
		snprintf(reason, sizeof(reason), "%s", cases[i].reason);
		smalti_failure_generalize(reason, cases[i].key);
		CHECK(strcmp(reason, cases[i].general) == 0, reason);
	}
}

static void failures_are_grouped(void)
{
	char path[512];
	const char *directory = test_scratch();
	struct smalti_failures *failures = calloc(1, sizeof(*failures));
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_failures_read(directory, failures, &error), &error, "no file");
	CHECK(failures->count == 0 && failures->lines == 0, "no file");
	snprintf(path, sizeof(path), "%s/failed.jsonl", directory);
	FILE *file = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fprintf(
		    file,
		    "{\"index\":%d,\"key\":\"%d.png\",\"stage\":\"image\",\"reason\":\"/x/%d.png: %s\"}\n", i,
		    i, i, i % 10 ? "empty" : "cut at 17");
	fputs("{\"index\":999,\"key\":\"999.png\",\"stage\":\"caption\",\"reason\":\"missing\"}\n", file);
	for (int i = 0; i < 200; i++)
		fprintf(file, "{\"index\":%d,\"key\":\"k\",\"stage\":\"s\",\"reason\":\"%c%c\"}\n", 1000 + i,
			'a' + i % 26, 'a' + i / 26);
	fputs("nonsense\n{\"index\":-1,\"key\":\"\",\"stage\":\"\",\"reason\":\"\"}\n{\"index\":5,\"key\":"
	      "\"torn",
	      file);
	fclose(file);
	SUCCEEDS(smalti_failures_read(directory, failures, &error), &error, "file");
	CHECK(failures->lines == 1201 && failures->items == 1200 && failures->unreadable == 3, "counts");
	CHECK(failures->count == SMALTI_FAILURE_GROUPS && failures->others == 203 - SMALTI_FAILURE_GROUPS,
	      "groups");
	CHECK(failures->groups[0].count == 900 && strcmp(failures->groups[0].reason, "empty") == 0, "first");
	CHECK(strcmp(failures->groups[0].examples[4], "5.png") == 0, "examples");
	CHECK(failures->groups[1].count == 100 && strcmp(failures->groups[1].reason, "cut at #") == 0,
	      "second");
	CHECK(strcmp(failures->groups[2].stage, "caption") == 0, "third");
	smalti_failures_free(failures);
	free(failures);
}

#define HEAD                                                                                                 \
	"{\"run\":1,\"program\":\"smalti\",\"host\":\"h\",\"pid\":7,\"began\":1000,\"workers\":[\"CPU "      \
	"0\"]}\n"
#define POINT(t, items, memory, busy)                                                                        \
	"{\"t\":" t ",\"resident\":" memory ",\"items\":" items                                              \
	",\"captions\":0,\"tokens\":0,\"pictures\":0,\"pixels\":0,\"failures\":0,\"rows\":0,\"bytes\":0,"    \
	"\"waiting\":0,\"computing\":0,\"finished\":0,\"text\":0,\"decode\":0,\"vae\":0,\"write\":0,"        \
	"\"busy\":[" busy "]}\n"

static void read_log(const char *text, struct smalti_runs *runs, const char *what)
{
	char path[512];
	const char *directory = test_scratch();
	struct smalti_error error = SMALTI_NO_ERROR;
	snprintf(path, sizeof(path), "%s/runs", directory);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/runs/a.jsonl", directory);
	FILE *file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	SUCCEEDS(smalti_runs_read(directory, runs, &error), &error, what);
}

static void damaged_logs_are_read_as_far_as_they_go(void)
{
	static const struct {
		const char *text;
		int runs, points, unreadable;
		const char *end;
	} cases[] = {
	    {HEAD POINT("1", "10", "5", "0.5") POINT("2", "20", "6", "1") "{\"t\":2,\"end\":\"finished\"}\n",
	     1, 2, 0, "finished"},
	    {HEAD POINT("1", "10", "5", "0.5") "{\"t\":2,\"ite", 1, 1, 1, ""},
	    {HEAD, 1, 0, 0, ""},
	    {"", 0, 0, 0, NULL},
	    {"nonsense\n" HEAD, 0, 0, 0, NULL},
	    {"{\"run\":2,\"pid\":7,\"began\":1000}\n", 0, 0, 0, NULL},
	    {POINT("1", "10", "5", "0.5"), 0, 0, 0, NULL},
	    {HEAD POINT("2", "10", "5", "0.5") POINT("1", "20", "6", "1") POINT("3", "30", "7", "1"), 1, 2, 1,
	     ""},
	    {HEAD POINT("NaN", "10", "5", "0.5") POINT("-1", "20", "6", "1") POINT("1", "-1", "6", "1")
		 POINT("1e999", "1", "6", "1") "[]\n3\n",
	     1, 0, 6, ""},
	    {HEAD POINT("1", "10", "5", "-1, 2, 3") POINT("2", "10", "5", ""), 1, 2, 0, ""},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_runs runs;
		read_log(cases[i].text, &runs, cases[i].text);
		CHECK(runs.count == cases[i].runs && runs.unreadable == 1 - cases[i].runs, cases[i].text);
		if (runs.count) {
			CHECK(runs.items[0].count == cases[i].points, cases[i].text);
			CHECK(runs.items[0].unreadable == cases[i].unreadable, cases[i].text);
			const char *end = cJSON_GetStringValue(runs.items[0].end);
			CHECK(strcmp(end ? end : "", cases[i].end) == 0, cases[i].text);
		}
		smalti_runs_free(&runs);
	}
}

static void histograms_that_come_later_count(void)
{
	struct smalti_runs runs;
	read_log(HEAD "{\"t\":1,\"lengths\":[[1,5]],\"bins\":[]}\n"
		      "{\"t\":2,\"lengths\":[[1,6],[7,-2],[\"x\"],9],\"bins\":[[256,512,3]]}\n",
		 &runs, "histograms");
	const struct smalti_run *run = &runs.items[0];
	CHECK(runs.count == 1 && run->lengths.count == 4 && run->lengths.items[0].count == 6 &&
		  run->lengths.items[1].first == 7 && run->lengths.items[1].count == 0,
	      "lengths");
	CHECK(run->bins.count == 1 && run->bins.items[0].second == 512 && run->bins.items[0].count == 3,
	      "bins");
	smalti_runs_free(&runs);
}

/* A run of more points than a page holds: counters are the last of neighbours, levels their largest. */
static void long_runs_are_thinned(void)
{
	enum { COUNT_OF_POINTS = (1 << 15) + 1 };
	struct smalti_run_point *points = calloc(COUNT_OF_POINTS, sizeof(*points));
	for (int i = 0; i < COUNT_OF_POINTS; i++)
		points[i] = (struct smalti_run_point){i, 100 - i % 2, {.items = i, .waiting = i % 2}};
	struct smalti_run run = {.points = points, .count = COUNT_OF_POINTS};
	struct smalti_report *data = calloc(1, sizeof(*data));
	data->directory = "f";
	data->runs = (struct smalti_runs){.items = &run, .count = 1};
	char *text = NULL;
	size_t length = 0;
	FILE *page = open_memstream(&text, &length);
	smalti_report_data(page, data);
	fclose(page);
	CHECK(strstr(text, "\"points\":[[1,100,1,0,0,0,0,0,0,0,1,0,"), "two are one");
	CHECK(strstr(text, "[32767,100,32767,") && !strstr(text, "[32766,"), "the last pair");
	CHECK(strstr(text, "[32768,100,32768,0,0,0,0,0,0,0,0,"), "the last one alone");
	free(text);
	free(data);
	free(points);
}

static const struct test tests[] = {
    {"text is escaped", text_is_escaped},
    {"reasons are generalized", reasons_are_generalized},
    {"failures are grouped", failures_are_grouped},
    {"damaged logs are read as far as they go", damaged_logs_are_read_as_far_as_they_go},
    {"histograms that come later count", histograms_that_come_later_count},
    {"long runs are thinned", long_runs_are_thinned},
};

TEST_MAIN("report", tests)
