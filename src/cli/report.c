/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/signals.h"

#include <time.h>

struct settings {
	const char *output;
	int64_t every; /* seconds; 0: once */
};

#define TYPE struct settings

static const struct smalti_option rows[] = {
    {SMALTI_STRING(TYPE, output), "output", 'o', "FILE", "file for the page, or - for standard output"},
    {SMALTI_INT64(TYPE, every), "every", 0, "SECONDS",
     "write the page again every so many seconds until a signal comes, and let it load itself again; 0: once",
     .minimum = 0, .maximum = 86400},
};

static const struct settings defaults = {.output = "report.html"};

static const struct smalti_example examples[] = {
    {"Write the report of an extraction", "smalti report features -o report.html"},
    {"Watch a training run", "smalti report run -o run.html --every 10"},
    {NULL, NULL},
};

/* Prints "run: step 12 of 100, 3.1 steps/s, 28 s left" on stderr. */
static void print_pace(const char *directory, const struct smalti_training_history *history)
{
	const struct smalti_training_pace pace = smalti_training_history_pace(history);
	char text[160] = "", number[SMALTI_NUMBER];
	smalti_append(text, sizeof(text), ", ", "step %" PRId64, pace.step);
	if (pace.steps > 0)
		smalti_append(text, sizeof(text), " ", "of %" PRId64, pace.steps);
	if (pace.per_second >= 1)
		smalti_append(text, sizeof(text), ", ", "%.3g steps/s", pace.per_second);
	else if (pace.per_second > 0)
		smalti_append(text, sizeof(text), ", ", "%s a step",
			      smalti_number_seconds(1 / pace.per_second, number));
	if (pace.left > 0)
		smalti_append(text, sizeof(text), ", ", "%s left", smalti_number_seconds(pace.left, number));
	else if (!history->lives)
		smalti_append(text, sizeof(text), ", ", "not running");
	fprintf(stderr, "%s: %s\n", directory, text);
}

static int write_report(const struct settings *settings, const char *directory, struct smalti_report *report,
			struct smalti_error *error)
{
	int status = smalti_report_read(report, directory, error);
	report->every = settings->every;
	smalti_signals_catch(); /* writing is short, and then leaves nothing unfinished */
	if (status == 0)
		status = smalti_report_write(report, settings->output, error);
	if (status == 0 && report->training.head)
		print_pace(directory, &report->training);
	smalti_report_free(report);
	return status;
}

/* Repeats it until a signal comes, which ends the pause. */
static int write_again(const struct settings *settings, const char *directory, struct smalti_report *report,
		       struct smalti_error *error)
{
	const struct timespec pause = {.tv_sec = settings->every};
	int status;
	do {
		status = write_report(settings, directory, report, error);
		if (settings->every && !status)
			nanosleep(&pause, NULL);
	} while (settings->every && !status && !smalti_signals_caught());
	return status;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	const struct settings *settings = options;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count != 1)
		return smalti_usage_error(&smalti_report_command,
					  "name one directory of features or of a training run, found %d",
					  count);
	if (settings->every && strcmp(settings->output, "-") == 0)
		return smalti_usage_error(&smalti_report_command, "--every needs a file: give -o FILE");
	SCOPED(free) struct smalti_report *report = smalti_calloc(1, sizeof(*report), &error);
	if (report && write_again(settings, operands[0], report, &error) == 0)
		return SMALTI_EXIT_OK;
	fprintf(stderr, "smalti report: %s\n", error.message);
	return SMALTI_EXIT_FAILED;
}

const struct smalti_command smalti_report_command = {
    .name = "smalti report",
    .summary = "write a report of an extraction or a training run as an HTML page",
    .operands = "DIR",
    .description =
	"Writes an HTML page. Of a directory of features, about its extraction by all processes that have "
	"worked on it: items, tokens and pixels per second over time, what each stage and each worker did, "
	"queues, memory, lengths of captions, bins of images, and failures grouped by their reasons. Of a "
	"run of smalti train: loss, norm of the gradient, rate, speed, what steps spend their time on, what "
	"workers and devices did, memory, evaluations, sample images, and how long the steps take that are "
	"left; that is said on the terminal, too.\n\n"
	"The page is self-contained: it includes the program that draws its charts (Chart.js) and loads "
	"nothing. It can also be written while the work is going on.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};
