/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"
#include "harness.h"

#include <string.h>

static double time_now;

static double fake_clock(void)
{
	return time_now;
}

static char output[8192];

static FILE *begin(struct smalti_progress *progress, bool terminal, bool quiet)
{
	FILE *file = tmpfile();
	smalti_progress_begin(progress, file, "images", quiet);
	progress->clock = fake_clock;
	progress->terminal = terminal;
	progress->start = time_now = 100;
	return file;
}

static void update_at(struct smalti_progress *progress, double seconds, int64_t done, int64_t total)
{
	time_now = 100 + seconds;
	smalti_progress_update(progress, done, total);
}

/* All that was written; closes the file. */
static const char *finish(struct smalti_progress *progress, FILE *file)
{
	smalti_progress_end(progress);
	rewind(file);
	output[fread(output, 1, sizeof(output) - 1, file)] = '\0';
	fclose(file);
	return output;
}

static void short_jobs_are_silent(void)
{
	for (int terminal = 0; terminal < 2; terminal++) {
		struct smalti_progress progress;
		FILE *file = begin(&progress, terminal, false);
		update_at(&progress, 0, 0, 2);
		update_at(&progress, 1.9, 2, 2);
		CU_ASSERT_STRING_EQUAL(finish(&progress, file), "");
	}
}

static void files_get_a_line_every_five_seconds(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, false, false);
	for (int i = 0; i <= 100; i++)
		update_at(&progress, i * 0.125, i, 400);
	CU_ASSERT_STRING_EQUAL(finish(&progress, file), "16/400 images, 8/s, 48 s left\n"
							"56/400 images, 8/s, 43 s left\n"
							"96/400 images, 8/s, 38 s left\n"
							"100/400 images, 8/s, took 13 s\n");
}

static void terminals_get_a_bar_ten_times_a_second(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, true, false);
	update_at(&progress, 2, 1, 4);
	update_at(&progress, 2.05, 2, 4);
	update_at(&progress, 4, 2, 4);
	CU_ASSERT_STRING_EQUAL(finish(&progress, file),
			       "\r[=======>                      ] 1/4 images, 0.5/s, 6 s left"
			       "\r[===============>              ] 2/4 images, 0.5/s, 4 s left"
			       "\r                                                            \r2/4 images, "
			       "0.5/s, took 4 s\n");
}

static void failures_are_counted(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, false, false);
	update_at(&progress, 6, 1, 2);
	progress.failed = 1;
	update_at(&progress, 9, 2, 2);
	CU_ASSERT_STRING_EQUAL(finish(&progress, file),
			       "1/2 images, 0.167/s, 6 s left\n2/2 images, 1 failed, 0.222/s, took 9 s\n");
}

static void messages_do_not_break_the_bar(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, true, false);
	smalti_progress_print(&progress, "line %d", 3);
	update_at(&progress, 2, 0, -1);
	smalti_progress_print(&progress, "x");
	update_at(&progress, 3, 6000, -1);
	CU_ASSERT_STRING_EQUAL(finish(&progress, file),
			       "line 3\n\r0 images\r        \rx\n\r6000 images, 2000/s\r                   \r"
			       "6000 images, 2000/s, took 3 s\n");
}

static void quiet_shows_messages_only(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, true, true);
	update_at(&progress, 9, 1, 4);
	smalti_progress_print(&progress, "x");
	CU_ASSERT_STRING_EQUAL(finish(&progress, file), "x\n");
}

static void extremes_stay_in_the_line(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, true, false);
	update_at(&progress, 2, 0, 0);
	update_at(&progress, 3, 7, 3);
	update_at(&progress, 1e6, 1, INT64_MAX);
	const char *text = finish(&progress, file);
	CHECK(strstr(text, "\r0/0 images"), text);
	CHECK(strstr(text, "\r[==============================] 3/3 images, 1/s"), text);
	for (const char *bar = strchr(text, '['); bar; bar = strchr(bar + 1, '['))
		CHECK(strcspn(bar, "\r") < 80, bar);
}

static void one_unit_says_what_it_does(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, false, false);
	smalti_progress_within(&progress, 0, "reading");
	update_at(&progress, 2, 0, 1);
	smalti_progress_within(&progress, 0.25, "step 5 of 20");
	update_at(&progress, 8, 0, 1);
	smalti_progress_within(&progress, 1.5, "step 20 of 20");
	update_at(&progress, 13, 0, 1);
	smalti_progress_within(&progress, 0, "step 20 of 20");
	update_at(&progress, 14, 1, 1);
	CU_ASSERT_STRING_EQUAL(finish(&progress, file), "0 %, reading\n"
							"25 %, step 5 of 20, 24 s left\n"
							"100 %, step 20 of 20\n"
							"1/1 images, 0.0714/s, took 14 s\n");
}

static void units_in_work_count_in_part(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, true, false);
	smalti_progress_within(&progress, 1.5, "step 3 of 4");
	update_at(&progress, 10, 4, 22);
	smalti_progress_within(&progress, 0.5, "step 1 of 4");
	update_at(&progress, 20, 5, -1);
	const char *text = finish(&progress, file);
	CHECK(strstr(text, "[======>                    ] 4/22 images, 25 %, step 3 of 4, 0.55/s, 30 s left"),
	      text);
	CHECK(strstr(text, "\r5 images, step 1 of 4, 0.275/s  "), text);
}

/* What was slow at first is forgotten. */
static void time_left_follows_the_present_speed(void)
{
	struct smalti_progress progress;
	FILE *file = begin(&progress, false, false);
	for (int i = 0; i <= 100; i++)
		update_at(&progress, i, 0, 1000);
	for (int i = 1; i <= 40; i++)
		update_at(&progress, 100 + i, 10 * i, 1000);
	const char *text = finish(&progress, file);
	CHECK(strstr(text, "0/1000 images\n0/1000 images\n"), "no speed, no time");
	CHECK(strstr(text, "\n370/1000 images, 2.7/s, 1:03 left\n"), text);
}

/* Once for each time, to who wants no progress, too. */
static void what_does_not_move_is_told(void)
{
	static const char words[] = "smalti: nothing has moved for a minute: decoding\n";
	for (int quiet = 0; quiet < 2; quiet++) {
		struct smalti_progress progress;
		FILE *file = begin(&progress, false, quiet);
		smalti_progress_within(&progress, 0.5, "decoding");
		for (int i = 0; i <= 59; i++)
			update_at(&progress, i, 0, 1);
		smalti_progress_within(&progress, 0.6, "decoding");
		for (int i = 60; i <= 118; i++)
			update_at(&progress, i, 0, 1);
		fflush(file);
		CHECK(ftell(file) == 0 || !quiet, "it moved meanwhile");
		for (int i = 119; i <= 300; i++)
			update_at(&progress, i, 0, 1);
		const char *text = finish(&progress, file), *first = strstr(text, words);
		CHECK(first && !strstr(first + 1, words), text);
	}
}

static const struct test tests[] = {
    {"short jobs are silent", short_jobs_are_silent},
    {"files get a line every five seconds", files_get_a_line_every_five_seconds},
    {"terminals get a bar ten times a second", terminals_get_a_bar_ten_times_a_second},
    {"failures are counted", failures_are_counted},
    {"messages do not break the bar", messages_do_not_break_the_bar},
    {"one unit says what it does", one_unit_says_what_it_does},
    {"units in work count in part", units_in_work_count_in_part},
    {"the time left follows the present speed", time_left_follows_the_present_speed},
    {"what does not move is told", what_does_not_move_is_told},
    {"quiet shows messages only", quiet_shows_messages_only},
    {"extremes stay in the line", extremes_stay_in_the_line},
};

TEST_MAIN("progress", tests)
